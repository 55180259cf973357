"""The word overlap of two texts: F1 for short answers, Jaccard similarity for whole ones and for queries."""

from collections import Counter

from ...text.normalise import normalised, tokens


def overlap(one: str, other: str) -> float:
    """F1 of the normalised words of two answers, 0..1.

    >>> overlap("Gatwick Airport", "Gatwick")
    0.6667
    """
    left, right = Counter(normalised(one).split()), Counter(normalised(other).split())
    shared = (left & right).total()
    return round(2.0 * shared / (left.total() + right.total()), 4) if shared else 0.0


def jaccard(one: str, other: str) -> float:
    """Jaccard similarity of the token sets of two texts, 0..1; 1 if both are empty.

    >>> jaccard("Born in Paris.", "born in Paris")
    1.0
    """
    left, right = tokens(one), tokens(other)
    union = left | right
    return len(left & right) / len(union) if union else 1.0
