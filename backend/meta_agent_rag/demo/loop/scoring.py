"""A short answer beside the gold ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...agent.monitoring.signals import overlap
from ...text.normalise import normalised


@dataclass(frozen=True, kw_only=True)
class Score:
    """Exact match and F1 of the normalised words, against the gold answer that fits best."""

    em: bool
    f1: float


def score(short_answer: str, golds: Sequence[str]) -> Score | None:
    """The score of an answer, `None` where no gold is known.

    Normalised as everywhere in the loop; the benchmark's figures are those of the official script.

    >>> score("the Marren", ["River Marren", "Marren"])
    Score(em=True, f1=1.0)
    """
    said = normalised(short_answer)
    scores = [Score(em=said == normalised(gold), f1=overlap(short_answer, gold)) for gold in golds]
    return max(scores, key=lambda one: (one.em, one.f1), default=None)
