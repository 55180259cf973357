"""The word overlap of two short answers."""

from collections import Counter

from ...text.normalise import normalised


def overlap(one: str, other: str) -> float:
    """F1 of the normalised words of two answers, 0..1.

    >>> overlap("Gatwick Airport", "Gatwick")
    0.6667
    """
    left, right = Counter(normalised(one).split()), Counter(normalised(other).split())
    shared = (left & right).total()
    return round(2.0 * shared / (left.total() + right.total()), 4) if shared else 0.0
