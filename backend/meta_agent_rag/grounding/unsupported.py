"""Marks the claims of an answer that nothing supports, or leaves them out."""

from collections.abc import Sequence

from ..prompts import phrase
from .claims import Claim
from .excision import without
from .support import Support


def with_unsupported_marked(answer: str, claims: Sequence[Claim], support: Sequence[Support]) -> str:
    """The answer with the phrase `unsupported_claim` of `prompts/phrases.yaml` after each unsupported claim.

    `claims` are those of this very answer, `support` theirs in the same order; the writer's marks stay, so this
    goes before `citations.cite`.
    """
    marked = ""
    position = 0
    for _, end in _unsupported(claims, support):
        marked += f"{answer[position:end]} {phrase('unsupported_claim')}"
        position = end
    return marked + answer[position:]


def without_unsupported(answer: str, claims: Sequence[Claim], support: Sequence[Support]) -> str:
    """The answer without its unsupported claims and the white space around them; empty where no claim is left."""
    dropped = _unsupported(claims, support)
    if claims and len(dropped) == len(claims):
        return ""
    return without(answer, dropped)


def _unsupported(claims: Sequence[Claim], support: Sequence[Support]) -> list[tuple[int, int]]:
    return [claim.span for claim, found in zip(claims, support, strict=True) if not found.supported]
