"""Node `remediate` (planning): a deficit becomes a directive, an answer mode and, where needed, a search."""

import logging
from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..errors import CorpusError
from ..grounding.abstention import is_abstention
from ..text.names import spaced, words
from ..text.normalise import normalised, tokens
from ..text.words import stop_words
from .context import Context
from .deficits import Deficit
from .state import VERDICTS, Diagnosis, Plan, Round, State, Update

_LOG = logging.getLogger(__name__)
_RESTATED = 0.7
"""Jaccard similarity of query and question from which a search would only find again what the question found."""


async def remediate(state: State, runtime: Runtime[Context]) -> Update:
    """Plan the next write for the deficit that the last round was diagnosed with.

    Where its search fails, the loop stops with the drafts that it has.
    """
    context = runtime.context
    last = state["rounds"][-1]
    assert last.diagnosis is not None
    deficit = context.deficits[last.diagnosis.deficit]
    update: dict[str, object] = {}
    queries: tuple[str, ...] = ()
    if deficit.retrieves and context.retriever is not None:
        queries = _queries(state["question"], last, state.get("queries", ()))
    if queries and context.retriever is not None:
        known = frozenset(found.passage.id for found in state.get("evidence", ()))
        try:
            retrieval = await context.retriever.retrieve(queries, k=context.settings.retrieval_top_k, exclude=known)
        except CorpusError as error:
            _LOG.warning("A follow-up search failed; the drafts so far are kept: %s", error)
            return {"stop_reason": "search_failed"}
        update = {"evidence": retrieval.found, "dropped": retrieval.dropped, "queries": queries}
    return {**update, "plan": _plan(deficit, last.diagnosis, queries)}


def _plan(deficit: Deficit, diagnosis: Diagnosis, queries: tuple[str, ...]) -> Plan:
    return Plan(
        deficit=deficit.name,
        directive=deficit.directive,
        answer_mode=deficit.answer_mode,
        suggestion=diagnosis.suggestion,
        queries=queries,
        repair=deficit.repair if diagnosis.source == "facts" else "rewrite",
        about=diagnosis.about,
    )


def _queries(question: str, last: Round, asked: Sequence[str]) -> tuple[str, ...]:
    """The critic's new queries; where it only repeated what was asked, the entities reached with what is still open."""
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
    """The question's content words that the draft's quotes do not hold, in their order."""
    held = spaced(" ".join(last.draft.quotes))
    content = [word for word in dict.fromkeys(words(question)) if word not in stop_words()]
    return " ".join(word for word in content if f" {word} " not in held)


def restates(query: str, question: str) -> bool:
    """Has a query nearly the words of the question, so that it would find the same again?

    >>> restates("Where was the director of Salt Road born?", "Where was the director of The Salt Road born?")
    True
    >>> restates("Mira Holt birthplace", "Where was the director of The Salt Road born?")
    False
    """
    asked, wanted = tokens(question), tokens(query)
    return bool(wanted) and len(asked & wanted) / len(asked | wanted) >= _RESTATED


def unasked(queries: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Queries that were not asked before, each once; word order, case and punctuation aside."""
    seen = {tokens(query) for query in asked}
    fresh: list[str] = []
    for query in queries:
        words = tokens(query)
        if words and words not in seen:
            seen.add(words)
            fresh.append(query)
    return tuple(fresh)
