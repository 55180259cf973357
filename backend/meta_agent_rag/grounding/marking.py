"""Adds the result of each claim's check to an answer."""

from collections.abc import Sequence
from itertools import pairwise

from ..prompts import phrase
from .claims import Claim
from .marks import without
from .support.verdict import Support


def marked(answer: str, claims: Sequence[Claim], support: Sequence[Support], *, drop: bool = False) -> str:
    """The answer annotated with the result for each claim, before `citations.cite` writes its marks out.

    A supported claim without a mark is given that of its passage; a derived figure is followed by its steps; an
    unsupported claim is followed by the phrase `unsupported_claim` of `prompts/phrases.yaml`, or dropped. `claims` must
    be those of this answer, and `support` their support in the same order.
    """
    if drop and claims and not any(found.supported for found in support):
        return ""
    ends = [0, *(claim.span[1] for claim in claims)]
    written = ""
    unsupported: list[tuple[int, int]] = []
    for (before, end), claim, found in zip(pairwise(ends), claims, support, strict=True):
        start = len(written) + claim.span[0] - before
        written += answer[before:end]
        if not found.supported and drop:
            unsupported.append((start, len(written)))
        else:
            written += "".join(f" {note}" for note in _notes(claim, found))
    return without(written + answer[ends[-1] :], unsupported)


def _notes(claim: Claim, support: Support) -> list[str]:
    if not support.supported:
        return [phrase("unsupported_claim")]
    mark = [f"[{support.number}]"] if not claim.marks and support.number is not None else []
    steps = dict.fromkeys(one.steps for one in support.derived)  # a product also explains its factor
    return mark + [f"[{phrase('derived')} {step}]" for step in steps]
