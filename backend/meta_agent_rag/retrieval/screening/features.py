"""The features of a passage window for detecting orders: hashed words and letters, and the concepts of words.

Concepts count in pairs: which occur in the same window, and which follow each other at what distance.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .concepts import lexicon
from .tokens import Tokens

KEYS = 1 << 20
"""Number of hash buckets of n-grams."""
DISTANCES = (1, 3, 6)
"""The most tokens from one concept to the next, for each kind of succession."""
_LETTERS = 4
_STEP = np.uint32(0x9E3779B1)
_PAIRS = (1, 2, 3)
"""Distances of the two words of a pair; a triple has distance 1 twice."""
_FOLLOWERS = 4

Keys: TypeAlias = NDArray[np.uint32]
Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Features:
    """A text's tokens, its windows as ranges of them (`starts`, `ends`), and the places of its concepts.

    `marked` has a row of 0 and 1 for each occurrence, `places` its token; `first` and `last` are the windows as
    ranges of these rows.
    """

    tokens: tuple[str, ...]
    starts: Places
    ends: Places
    places: Places
    marked: NDArray[np.float32]
    first: Places
    last: Places

    @classmethod
    def of(cls, text: str) -> "Features":
        """Read a text."""
        cut = Tokens.of(text)
        windows = np.array(cut.windows(), dtype=np.int64).reshape(-1, 2)
        places, marked = lexicon().found(cut.tokens)
        return cls(
            tokens=cut.tokens,
            starts=windows[:, 0],
            ends=windows[:, 1],
            places=places,
            marked=marked,
            first=np.searchsorted(places, windows[:, 0]),
            last=np.searchsorted(places, windows[:, 1]),
        )

    def grams(self) -> Iterator[tuple[Keys, int]]:
        """The keys of words, pairs and triples by their start, and the number of tokens that each covers."""
        words = np.array([_word(token) for token in self.tokens], dtype=np.uint32)
        yield words % KEYS, 1
        for distance in _PAIRS:
            yield _joined(words[:-distance], words[distance:], distance) % KEYS, distance + 1
        pairs = _joined(words[:-1], words[1:], len(_PAIRS) + 1)
        yield _joined(pairs[:-1], words[2:], len(_PAIRS) + 2) % KEYS, 3

    def letters(self) -> list[Keys]:
        """The keys of the letter n-grams of each token."""
        return [letters_of(token) for token in self.tokens]

    def followers(self) -> Iterator[tuple[int, Places, Places]]:
        """The rows followed by the row `step` rows later, by kind of succession: step, rows, kinds."""
        for step in range(1, _FOLLOWERS + 1):
            kinds = np.searchsorted(DISTANCES, self.places[step:] - self.places[:-step])
            rows = np.flatnonzero(kinds < len(DISTANCES))
            if len(rows):
                yield step, rows, kinds[rows]

    def together(self) -> NDArray[np.float32]:
        """For each window and concept: 1 if it occurs there, else 0."""
        sums = np.concatenate([np.zeros((1, self.marked.shape[1]), np.float32), np.cumsum(self.marked, axis=0)])
        return np.asarray(sums[self.last] - sums[self.first] > 0, dtype=np.float32)


@lru_cache(maxsize=50_000)
def _word(token: str) -> int:
    return zlib.crc32(token.encode())


@lru_cache(maxsize=50_000)
def letters_of(token: str) -> Keys:
    """The keys of the letter n-grams of a token, empty for a short one."""
    framed = f"<{token}>" if len(token) > _LETTERS and token[0].isalpha() else ""
    grams = [framed[at : at + _LETTERS] for at in range(len(framed) - _LETTERS + 1)]
    return np.array([zlib.crc32(f"#{gram}".encode()) % KEYS for gram in grams], dtype=np.uint32)


def _joined(left: NDArray[Any], right: NDArray[Any], kind: int) -> Keys:
    mixed = (left * _STEP + right) * _STEP + np.uint32(kind)
    return np.asarray(mixed ^ (mixed >> np.uint32(15)), dtype=np.uint32)
