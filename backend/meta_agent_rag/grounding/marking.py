"""Adds the result of each claim's check to an answer."""

from collections.abc import Sequence
from itertools import pairwise

from ..prompts import phrase
from .claims import Claim
from .exact import Support
from .marks import marks, without


def marked(
    answer: str,
    claims: Sequence[Claim],
    support: Sequence[Support],
    *,
    evidence: Sequence[str] = (),
    drop: bool = False,
) -> str:
    """The answer annotated with the result for each claim, before `citations.cite` writes its marks out.

    A supported claim cites the passages that support it, and no others; a derived figure is followed by its steps; an
    unsupported claim by the phrase `unsupported_claim` of `prompts/phrases.yaml`, or it is dropped. `claims` must be
    those of this answer, and `support` their support in the same order.
    """
    if drop and claims and not any(found.supported for found in support):
        return ""
    ends = [0, *(claim.span[1] for claim in claims)]
    written = ""
    unsupported: list[tuple[int, int]] = []
    for (before, end), claim, found in zip(pairwise(ends), claims, support, strict=True):
        start = len(written) + claim.span[0] - before
        stretch = answer[before:end]
        if found.supported:
            written += _cited(stretch, claim, found, evidence)
        else:
            written += stretch if drop else f"{stretch} {phrase('unsupported_claim')}"
        if not found.supported and drop:
            unsupported.append((start, len(written)))
    return without(written + answer[ends[-1] :], unsupported)


def _cited(stretch: str, claim: Claim, support: Support, evidence: Sequence[str]) -> str:
    """A claim with the marks of its passages: its own if they are among these, else theirs in place of the first."""
    used = [number for number in (support.number, *support.also) if number is not None]
    own = set(claim.marks)
    if own and own.isdisjoint(used) and (found := marks(stretch, evidence)):
        first, *others = found
        stretch = without(stretch, [(one.start, one.end) for one in others])
        stretch = f"{stretch[: first.start]}{''.join(f'[{number}]' for number in used)}{stretch[first.end :]}"
        used = []
    steps = [f"[{phrase('derived')} {step}]" for step in support.steps]
    return " ".join([stretch, *(f"[{number}]" for number in used if number not in own), *steps])
