"""Is a claim supported by the passages that it cites? Judged by words and vectors, without a model's opinion.

    lexical   share of the claim's content words in the best one to three consecutive sentences of the cited
              passages and in their titles; every word counts alike, but for the claim's first one, which
              counts twice where it is capitalised: it is often what the claim is about
    embedding the cosine of the claim and the nearest cited passage, 0 at least
    score     0.7 x lexical + 0.3 x embedding, or lexical alone if there are no vectors

A claim is supported where every number and every name in it occurs in a cited passage, and its score reaches
0.6. What cannot be seen this way is a claim that turns the passage's own words round: "not", who did what to whom.

Nor is support alone enough: a passage about something else may be quoted to the letter, and supports whatever says
next to nothing ("Yes.", "Eight."). So what is supported must also be about the question (`on_the_question`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

from ..prompts import phrase
from ..retrieval.passage import Found, Passage
from ..text.normalise import tokens
from .claims import Claim, claims
from .marks import without
from .matching import best_window, content_words, first_word, lacking, names
from .quotes import is_verbatim

LEXICAL_WEIGHT = 0.7
EMBEDDING_WEIGHT = 0.3
SUPPORT_THRESHOLD = 0.6

Cosine: TypeAlias = Callable[[Claim, Passage], float]
"""The cosine of a claim's and a passage's vectors, which the caller has computed."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """How well the cited passages support a claim; shares and scores in 0..1.

    `passage_id` is the cited passage that holds most of the claim's words, `None` where none is cited.
    `embedding` is `None` where no vectors were given. `missing` are the numbers and names that the cited passages
    lack, as they are compared.
    """

    score: float
    passage_id: str | None
    lexical: float
    embedding: float | None
    supported: bool
    missing: tuple[str, ...] = ()


def supports(
    claims: Sequence[Claim],
    passages: Sequence[Found],
    cosine: Cosine | None = None,
    *,
    threshold: float = SUPPORT_THRESHOLD,
) -> tuple[Support, ...]:
    """The support of each claim of an answer, in their order.

    `passages` are those of the writer's prompt, the first of which is number 1. A claim without a mark is held
    against the passages that the answer's other claims cite.
    """
    cited = tuple(dict.fromkeys(number for claim in claims for number in claim.marks))
    with_marks = (claim if claim.marks else replace(claim, marks=cited) for claim in claims)
    return tuple(supported(claim, passages, cosine, threshold=threshold) for claim in with_marks)


def supported(
    claim: Claim, passages: Sequence[Found], cosine: Cosine | None = None, *, threshold: float = SUPPORT_THRESHOLD
) -> Support:
    """The support of one claim by the passages whose numbers it bears (see the module for the rule).

    One that cites nothing in the evidence is not supported. One without content words ("Yes, it was.") says
    nothing that could be missing: its lexical share is 1, and its embedding does not count.
    """
    cited = [passages[number - 1].passage for number in claim.marks if 1 <= number <= len(passages)]
    if not cited:
        return Support(score=0.0, passage_id=None, lexical=0.0, embedding=None, supported=False)
    wanted = content_words(claim.text)
    held = [_held(wanted, passage) for passage in cited]
    lexical = _share(claim.text, wanted, frozenset().union(*held))
    embedding = max(_clipped(cosine(claim, passage)) for passage in cited) if cosine and wanted else None
    score = lexical if embedding is None else LEXICAL_WEIGHT * lexical + EMBEDDING_WEIGHT * embedding
    missing = lacking(claim.text, "\n".join(passage.searchable() for passage in cited))
    best = max(range(len(cited)), key=lambda index: (len(held[index]), -index))
    return Support(
        score=score,
        passage_id=cited[best].id,
        lexical=lexical,
        embedding=embedding,
        supported=not missing and score >= threshold,
        missing=missing,
    )


def _held(wanted: frozenset[str], passage: Passage) -> frozenset[str]:
    return best_window(wanted, passage.text).held | (wanted & content_words(passage.title))


def _share(text: str, wanted: frozenset[str], held: frozenset[str]) -> float:
    if not wanted:
        return 1.0
    subject = first_word(text)
    weights = {word: 2 if word == subject else 1 for word in wanted}
    return sum(weights[word] for word in held) / sum(weights.values())


def _clipped(cosine: float) -> float:
    return min(1.0, max(0.0, cosine)) if isfinite(cosine) else 0.0


def with_quoted_passages_cited(answer: str, passages: Sequence[Found], quotes: Sequence[str]) -> str:
    """The answer with a mark behind each claim that has none, where a passage that was quoted supports it.

    `passages` are those of the writer's prompt, the first of which is number 1; `quotes` are verbatim. Marks
    that the writer set are left as they are, wrong ones too: they are judged, not repaired.
    """
    texts = [found.passage.searchable() for found in passages]
    quoted = [number for number, text in enumerate(texts, 1) if any(is_verbatim(quote, [text]) for quote in quotes)]
    written, position = "", 0
    for claim in claims(answer, texts):
        if claim.marks:
            continue
        judged = {number: supported(replace(claim, marks=(number,)), passages) for number in quoted}
        best = max(judged, key=lambda number: judged[number].score, default=0)
        if best and judged[best].supported:
            end = claim.span[1]
            written += f"{answer[position:end]} [{best}]"
            position = end
    return written + answer[position:]


def with_unsupported_marked(answer: str, claims: Sequence[Claim], support: Sequence[Support]) -> str:
    """The answer with the phrase `unsupported_claim` of `prompts/phrases.yaml` after each unsupported claim.

    `claims` are those of this very answer, `support` theirs in the same order; the writer's marks stay, so this
    goes before `citations.cite`.
    """
    marked = ""
    position = 0
    for _, end in _unsupported_spans(claims, support):
        marked += f"{answer[position:end]} {phrase('unsupported_claim')}"
        position = end
    return marked + answer[position:]


def without_unsupported(answer: str, claims: Sequence[Claim], support: Sequence[Support]) -> str:
    """The answer without its unsupported claims and the white space around them; empty if no claim is left."""
    dropped = _unsupported_spans(claims, support)
    if claims and len(dropped) == len(claims):
        return ""
    return without(answer, dropped)


def _unsupported_spans(claims: Sequence[Claim], support: Sequence[Support]) -> list[tuple[int, int]]:
    return [claim.span for claim, found in zip(claims, support, strict=True) if not found.supported]


_SCANT = 1
"""Content words up to which a claim states nothing without its question."""
_SHARED = 2


def speaks_of(question: str, source: str) -> bool:
    """Does a text hold every name of a question; where it has none, two of its content words, or all?

    >>> speaks_of("Is Mira Holt a director?", "Mira Holt directed it."), speaks_of("Is the earth flat?", "A flat roof.")
    (True, False)
    """
    if named := names(question):
        words = tokens(source)
        return not any(words.isdisjoint({name, name.removesuffix("s"), f"{name}s"}) for name in named)
    wanted = content_words(question)
    return len(wanted & content_words(source)) >= min(_SHARED, len(wanted))


def on_the_question(
    question: str, claims: Sequence[Claim], support: Sequence[Support], source: str
) -> tuple[Support, ...]:
    """The support, without that of claims that say next to nothing if the passages do not speak of the question.

    `source` is the text of all passages that the answer quotes or cites.
    """
    if speaks_of(question, source):
        return tuple(support)
    return tuple(
        replace(found, supported=found.supported and len(content_words(claim.text)) > _SCANT)
        for claim, found in zip(claims, support, strict=True)
    )


def holds_the_answer(
    question: str, short_answer: str, claims: Sequence[Claim], support: Sequence[Support], source: str
) -> bool:
    """Is a claim supported that gives the short answer, of those that hold most of its words?

    Where no claim holds any of them, one must occur in `source`, the passages quoted or cited. A verdict ("no") may
    also follow from other claims ("They were built by different yards."), where `source` speaks of the question.
    """
    wanted, said = content_words(short_answer), tokens(short_answer)
    shared = [len(wanted & content_words(claim.text)) if wanted else said <= tokens(claim.text) for claim in claims]
    most = max(shared, default=0)
    given = any(found.supported for held, found in zip(shared, support, strict=True) if held == most)
    if not wanted:
        return bool(most and given) or speaks_of(question, source)
    return given if most else bool(wanted & content_words(source))
