"""Adds the result of each claim's check to an answer."""

from collections.abc import Sequence
from itertools import pairwise

from ..prompts import phrase
from .claims import Claim
from .marks import without
from .support.verdict import Support


def marked(answer: str, claims: Sequence[Claim], support: Sequence[Support], *, drop: bool = False) -> str:
    """The answer annotated with the result for each claim, before `citations.cite` writes its marks out.

    A supported claim is given the marks that it lacks of the passages that support it; a derived figure is followed by
    its steps; an unsupported claim by the phrase `unsupported_claim` of `prompts/phrases.yaml`, or it is dropped.
    `claims` must be those of this answer, and `support` their support in the same order.
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
    numbers = () if support.number is None else (support.number, *support.also)
    mark = [f"[{number}]" for number in numbers if number not in claim.marks]
    steps = dict.fromkeys(one.steps for one in support.derived)  # a product also explains its factor
    return mark + [f"[{phrase('derived')} {step}]" for step in steps]
