"""Detects when further rounds change nothing: Jaccard similarity of consecutive full answers.

Token sets alone cannot distinguish "A came before B" from "B came before A", so the short answers must be
equal as well.
"""

from collections.abc import Sequence

from ...text.normalise import normalised, tokens
from ..state import Draft


def jaccard(one: str, other: str) -> float:
    """Jaccard similarity of the token sets of two answers, 0..1; 1 if both are empty.

    >>> jaccard("Born in Paris.", "born in Paris")
    1.0
    """
    left, right = tokens(one), tokens(other)
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def same_draft(one: Draft, other: Draft, threshold: float) -> bool:
    """Do two drafts agree: similar full answers, and short answers equal once normalised?"""
    alike = jaccard(one.answer, other.answer) >= threshold
    return alike and normalised(one.short_answer) == normalised(other.short_answer)


def converged(drafts: Sequence[Draft], threshold: float) -> bool:
    """Did the last draft repeat the one before it?"""
    return len(drafts) > 1 and same_draft(drafts[-1], drafts[-2], threshold)


def oscillates(drafts: Sequence[Draft], threshold: float) -> bool:
    """Did the last draft return to an earlier one?"""
    return any(same_draft(drafts[-1], earlier, threshold) for earlier in drafts[:-2])
