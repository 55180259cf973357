"""A linear model that detects sentences that give orders to a language model.

A text is split into windows of one to three sentences; a window's score is the sum of the weights of its features
(`features.py`), a text's score that of its worst window. Weights are data (`injection_classifier.npz`), produced by
`marag bench injection train`; words are stored as hashes, so that the package contains no text of the training
set. It detects orders to a model in many wordings and some languages; a plain request, or an adaptive attacker, gets
past it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .disguises import readings
from .features import KEYS, Features, letters_of

GRAMS_ADDED, CONCEPTS_ADDED = 40.0, 4.0
"""Added to a window's numbers of n-grams and concepts, so that the weights of a short one do not dominate."""

HIDDEN = 1.0
"""Added to the score of a hidden text, since hiding it indicates intent."""


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """`grams` has a weight for each key, `following` for each kind of succession of two concepts, `together` for two
    that occur in one window; a text above `threshold` counts as an attack."""

    grams: NDArray[np.float32]
    following: NDArray[np.float32]
    together: NDArray[np.float32]
    bias: float
    threshold: float

    @cached_property
    def letters(self) -> Callable[[str], tuple[float, float]]:
        """The sum of the weights of a token's letter n-grams, and their number; cached, because words recur."""

        @lru_cache(maxsize=50_000)
        def weighed(token: str) -> tuple[float, float]:
            keys = letters_of(token)
            return float(self.grams[keys].sum()), float(len(keys))

        return weighed


def reads_like_an_order(text: str) -> bool:
    """Does a sentence of the text, or of a text hidden in it, address a language model as attacks do?"""
    known = model()
    hidden = (score(reading, known) + HIDDEN for reading in readings(text))
    return score(text, known) > known.threshold or any(found > known.threshold for found in hidden)


def score(text: str, model: LinearModel) -> float:
    """The score of the worst window; minus infinity without words."""
    found = Features.of(text)
    if not len(found.starts):
        return float("-inf")
    scores = _gram_scores(found, model) + _following_scores(found, model) + _together_scores(found, model)
    return float(scores.max()) + model.bias


def _gram_scores(found: Features, model: LinearModel) -> NDArray[np.float64]:
    total, count = np.zeros(len(found.starts)), np.full(len(found.starts), GRAMS_ADDED)
    for keys, length in found.grams():
        last = np.maximum(found.ends - length + 1, found.starts)
        total += _between(found.starts, last, model.grams[keys])
        count += last - found.starts
    letters = np.array([model.letters(token) for token in found.tokens])
    total += _between(found.starts, found.ends, letters[:, 0])
    count += _between(found.starts, found.ends, letters[:, 1])
    return np.asarray(total / np.sqrt(count))


def _following_scores(found: Features, model: LinearModel) -> NDArray[np.float64]:
    total = np.zeros(len(found.starts))
    weighted = found.marked @ model.following
    for step, rows, kinds in found.followers():
        values = np.zeros(len(found.marked))
        values[rows] = (weighted[kinds, rows] * found.marked[rows + step]).sum(axis=1)
        total += _between(found.first, np.maximum(found.last - step, found.first), values)
    return np.asarray(total / np.sqrt(found.last - found.first + CONCEPTS_ADDED))


def _together_scores(found: Features, model: LinearModel) -> NDArray[np.float64]:
    named = found.together()
    total = (named @ model.together * named).sum(axis=1)
    return np.asarray(total / np.sqrt(named.sum(axis=1) + CONCEPTS_ADDED), dtype=np.float64)


@cache
def model() -> LinearModel:
    """The packaged model."""
    return read(files(__package__).joinpath("injection_classifier.npz").read_bytes())


def read(data: bytes) -> LinearModel:
    """A model from its file: `keys` (uint32) and their `weights`, `following`, `together`, `bias` and `threshold`."""
    with np.load(BytesIO(data), allow_pickle=False) as kept:
        grams = np.zeros(KEYS, dtype=np.float32)
        grams[kept["keys"]] = kept["weights"]
        return LinearModel(
            grams=grams,
            following=kept["following"].astype(np.float32),
            together=kept["together"].astype(np.float32),
            bias=float(kept["bias"]),
            threshold=float(kept["threshold"]),
        )


def _between(starts: NDArray[Any], ends: NDArray[Any], values: ArrayLike) -> NDArray[np.float64]:
    """The sum of the values in each range."""
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    return np.asarray(sums[ends] - sums[starts])
