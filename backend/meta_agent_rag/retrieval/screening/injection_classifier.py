"""A linear model of sentences that give orders to a language model.

A text is cut into windows of one sentence and of two; a window's score is the sum of the weights of its word and
letter n-grams over the square root of their number, a text's score that of its worst window. Weights are data
(`injection_classifier.npz`), found by `python -m benchmarks.injection train`; keys are hashes, so that no text of the
training set is in the package.
It sees the wording that attacks share: a plain request, or an attacker who adapts, gets past it.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...text.normalise import undisguised

KEYS = 1 << 20
"""Number of hash buckets of n-grams."""
_LONGEST_WINDOW = 60
_EDGE = "¶"
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?:;。！？])\s+")  # noqa: RUF001  # full-width marks end sentences
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|[<>\[\]{}#|:\"*=-]+")  # noqa: RUF001  # both apostrophes
_LETTERS = 4
_STEP = np.uint32(0x9E3779B1)
_PAIRS = (1, 2, 3)
"""Distances of the two words of a pair; a triple has distance 1 twice."""

Keys = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """`weights` has a number for each key; a text above `threshold` is taken for an attack."""

    weights: NDArray[np.float32]
    bias: float
    threshold: float


def reads_like_an_order(text: str) -> bool:
    """Does a sentence of the text speak to a language model as those of attacks do?"""
    return score(text, model()) > model().threshold


def score(text: str, model: LinearModel) -> float:
    """The score of the worst window; without words it is minus infinity."""
    grams = Grams.of(text)
    windows = grams.windows()
    if not windows:
        return float("-inf")
    starts, ends = (np.array(side) for side in zip(*windows, strict=True))
    total, count = np.zeros(len(windows)), np.zeros(len(windows))
    for keys, length in grams.series():
        last = np.maximum(ends - length + 1, starts)
        total += _between(starts, last, model.weights[keys])
        count += last - starts
    letters = [grams.letters(token) for token in grams.tokens]
    total += _between(starts, ends, [float(model.weights[keys].sum()) for keys in letters])
    count += _between(starts, ends, [len(keys) for keys in letters])
    return float((total / np.sqrt(np.maximum(count, 1.0))).max()) + model.bias


@dataclass(frozen=True)
class Grams:
    """A text as tokens, with a mark at both edges of each sentence."""

    tokens: tuple[str, ...]
    edges: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "Grams":
        """Cut a text; letter case, invisible characters and look-alike forms do not count."""
        tokens, edges = [_EDGE], [0]
        for sentence in _SENTENCE_END.split(undisguised(text)):
            words = _TOKEN.findall(sentence)
            if words:
                tokens += [*words, _EDGE]
                edges.append(len(tokens) - 1)
        return cls(tuple(tokens), tuple(edges))

    def windows(self) -> list[tuple[int, int]]:
        """Ranges of tokens: each sentence, in parts where it is long, and around each edge between two."""
        found = []
        for start, end in zip(self.edges, self.edges[1:], strict=False):
            found += [
                (at, min(at + _LONGEST_WINDOW, end + 1))
                for at in range(start, max(end - _LONGEST_WINDOW // 2, start) + 1, _LONGEST_WINDOW // 2)
            ]
        for before, at, after in zip(self.edges, self.edges[1:], self.edges[2:], strict=False):
            half = _LONGEST_WINDOW // 2
            found.append((max(before, at - half), min(after, at + half) + 1))
        return found

    def series(self) -> Iterator[tuple[Keys, int]]:
        """The keys of words, pairs and triples by the place where they begin, and how many tokens one covers."""
        words = np.array([_word(token) for token in self.tokens], dtype=np.uint32)
        yield words % KEYS, 1
        for distance in _PAIRS:
            yield _joined(words[:-distance], words[distance:], distance) % KEYS, distance + 1
        pairs = _joined(words[:-1], words[1:], len(_PAIRS) + 1)
        yield _joined(pairs[:-1], words[2:], len(_PAIRS) + 2) % KEYS, 3

    @staticmethod
    @lru_cache(maxsize=50_000)
    def letters(token: str) -> Keys:
        """The keys of the letter n-grams of a longer word."""
        framed = f"<{token}>" if len(token) > _LETTERS and token[0].isalpha() else ""
        grams = [framed[at : at + _LETTERS] for at in range(len(framed) - _LETTERS + 1)]
        return np.array([zlib.crc32(f"#{gram}".encode()) % KEYS for gram in grams], dtype=np.uint32)


@cache
def model() -> LinearModel:
    """The model of the package."""
    return read(files(__package__).joinpath("injection_classifier.npz").read_bytes())


def read(data: bytes) -> LinearModel:
    """A model from its file: `keys` (uint32), `weights` (float16), `bias` and `threshold`."""
    with np.load(BytesIO(data), allow_pickle=False) as kept:
        weights = np.zeros(KEYS, dtype=np.float32)
        weights[kept["keys"]] = kept["weights"]
        return LinearModel(weights=weights, bias=float(kept["bias"]), threshold=float(kept["threshold"]))


@lru_cache(maxsize=50_000)
def _word(token: str) -> int:
    if token.isdigit():
        token = "0"
    elif not token[0].isalpha():
        token = token[:3]  # a ruler is a ruler at any length
    return zlib.crc32(token.encode())


def _between(starts: NDArray[Any], ends: NDArray[Any], values: ArrayLike) -> NDArray[np.float64]:
    """The sum of the values in each range."""
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    return np.asarray(sums[ends] - sums[starts])


def _joined(left: NDArray[Any], right: NDArray[Any], kind: int) -> Keys:
    mixed = (left * _STEP + right) * _STEP + np.uint32(kind)
    return np.asarray(mixed ^ (mixed >> np.uint32(15)), dtype=np.uint32)
