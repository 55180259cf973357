"""Corrects citations: a claim that its cited passage does not support is given the quoted passage that does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...retrieval.passage import Found
from ..claims import Claim, claims
from ..marks import marks, without
from .neighbours import connects
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
            answer = _with_new_marks(answer, claim, f"[{quoted.number}]", texts)
    found = claims(answer, texts)
    ruled = supports(found, passages, question=question, quotes=quotes)
    return Recited(text=answer, claims=tuple(found), ruled=ruled)


def without_strays(
    answer: str, found: Sequence[Claim], support: Sequence[Support], passages: Sequence[Found]
) -> tuple[str, tuple[Claim, ...]]:
    """The answer and its claims, a claim's marks replaced if the critic took its words from other passages alone.

    They are kept if one of the cited passages is connected with one of those: it may be what links the two.
    """
    texts = [one.passage.searchable() for one in passages]
    changed = answer
    for claim, judged in reversed(list(zip(found, support, strict=True))):
        used = [number for number in (judged.number, *judged.also) if number is not None]
        if claim.marks and judged.supported and judged.words and not _belong_together(claim.marks, used, passages):
            changed = _with_new_marks(changed, claim, "".join(f"[{number}]" for number in used), texts)
    again = claims(changed, texts) if changed != answer else tuple(found)
    return (changed, again) if len(again) == len(found) else (answer, tuple(found))


def _belong_together(cited: Sequence[int], used: Sequence[int], passages: Sequence[Found]) -> bool:
    known = [passages[number - 1].passage for number in cited if 1 <= number <= len(passages)]
    return any(connects(one, passages[number - 1].passage) for one in known for number in used)


def _with_new_marks(answer: str, claim: Claim, mark: str, texts: Sequence[str]) -> str:
    """The answer with this mark in place of a claim's first one, and without its others."""
    start, end = claim.span
    first, *others = [one for one in marks(answer, texts) if start <= one.start < end]
    answer = without(answer, [(one.start, one.end) for one in others])
    return f"{answer[: first.start]}{mark}{answer[first.end :]}"
