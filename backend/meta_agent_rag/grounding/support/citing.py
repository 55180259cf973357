"""Corrects citations: a claim that its cited passage does not support is given the quoted passage that does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...retrieval.passage import Found
from ..claims import Claim, claims
from ..marks import marks, without
from .rules import cited_or_quoted, supports
from .verdict import Support


@dataclass(frozen=True, kw_only=True)
class Recited:
    """An answer with its corrected marks, its claims, and the rules' verdict on each."""

    text: str
    claims: tuple[Claim, ...]
    ruled: tuple[Support, ...]


def recited(answer: str, passages: Sequence[Found], quotes: Sequence[str], *, question: str = "") -> Recited:
    """The answer, with the marks of a claim replaced by that of a quoted passage which supports it, or comes closer.

    Marks of quoted passages that support the claim are kept.

    Writers copy sentences better than they count passages. `passages` are those of the prompt, numbered from 1;
    `quotes` occur in them verbatim.
    """
    texts = [found.passage.searchable() for found in passages]
    found = claims(answer, texts)
    known = set(cited_or_quoted((), passages, quotes))
    as_cited = supports(found, passages, question=question, quotes=quotes)
    doubted = [
        bool(claim.marks) and not (cited.supported and known.intersection(claim.marks))
        for claim, cited in zip(found, as_cited, strict=True)
    ]
    if not any(doubted):
        return Recited(text=answer, claims=tuple(found), ruled=as_cited)
    as_quoted = supports([replace(one, marks=()) for one in found], passages, question=question, quotes=quotes)
    for claim, doubt, cited, quoted in reversed(list(zip(found, doubted, as_cited, as_quoted, strict=True))):
        if doubt and (quoted.supported or (not cited.supported and quoted.score > cited.score)):
            start, end = claim.span
            first, *others = [mark for mark in marks(answer, texts) if start <= mark.start < end]
            answer = without(answer, [(mark.start, mark.end) for mark in others])
            answer = f"{answer[: first.start]}[{quoted.number}]{answer[first.end :]}"
    found = claims(answer, texts)
    ruled = supports(found, passages, question=question, quotes=quotes)
    return Recited(text=answer, claims=tuple(found), ruled=ruled)
