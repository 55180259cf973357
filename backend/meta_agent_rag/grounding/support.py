"""Is a claim supported by the passages that it cites? Judged by words and vectors, without a model's opinion.

    lexical   share of the claim's content words in the best one to three consecutive sentences of the cited
              passages and in their titles; every word counts alike, but for the claim's first one, which
              counts twice where it is capitalised: it is often what the claim is about
    embedding the cosine of the claim and the nearest cited passage, 0 at least
    score     0.7 x lexical + 0.3 x embedding, or lexical alone where there are no vectors

A claim is supported where every number and every name in it occurs in a cited passage, and its score reaches
0.6. What cannot be seen this way is a claim that turns the passage's own words round: "not", who did what to whom.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

from ..retrieval.passage import Found, Passage
from .claims import Claim
from .matching import best_window, content_words, first_word, lacking

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
