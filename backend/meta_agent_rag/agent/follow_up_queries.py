"""The queries of a follow-up search: an open fact, the critic's suggestions, or the missing hop of the draft."""

from collections.abc import Sequence

from ..grounding.abstention import is_abstention
from ..text.names import spaced, words
from ..text.normalise import jaccard, normalised, tokens
from ..text.stop_words import stop_words
from .state import VERDICTS, Round

_RESTATED = 0.7
"""Jaccard similarity of query and question from which a search would find the same passages again."""


def follow_up_queries(question: str, last: Round, asked: Sequence[str]) -> tuple[str, ...]:
    """The queries of a repair: those of the diagnosis that were not asked before and do not restate the question.

    If none is left, the entities that the answers arrived at, each with the still open part of the question.
    """
    suggested = last.diagnosis.suggested_queries if last.diagnosis is not None else ()
    new = unasked([query for query in suggested if not restates(query, question)], asked)
    return new or unasked([f"{entity} {still_open(question, last)}".strip() for entity in _reached(last)], asked)


def _reached(last: Round) -> list[str]:
    """The entities that the draft and the second answer arrived at."""
    reached = [] if last.draft.abstained else [last.draft.short_answer]
    if last.second_answer is not None and not is_abstention(last.second_answer.short_answer):
        reached.append(last.second_answer.short_answer)
    return [answer for answer in dict.fromkeys(reached) if normalised(answer) not in VERDICTS]


def still_open(question: str, last: Round) -> str:
    """The question's content words that the draft's quotes do not contain, in order."""
    held = spaced(" ".join(last.draft.quotes))
    content = [word for word in dict.fromkeys(words(question)) if word not in stop_words()]
    return " ".join(word for word in content if f" {word} " not in held)


def restates(query: str, question: str) -> bool:
    """Does a query nearly repeat the question's words, so that it would find the same passages?

    >>> restates("Where was the director of Salt Road born?", "Where was the director of The Salt Road born?")
    True
    >>> restates("Mira Holt birthplace", "Where was the director of The Salt Road born?")
    False
    """
    return bool(tokens(query)) and jaccard(query, question) >= _RESTATED


def unasked(queries: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Queries not asked before, without duplicates; word order, case and punctuation are ignored."""
    seen = {tokens(query) for query in asked}
    fresh: list[str] = []
    for query in queries:
        words = tokens(query)
        if words and words not in seen:
            seen.add(words)
            fresh.append(query)
    return tuple(fresh)
