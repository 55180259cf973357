"""An encoder without a model: feature hashing of words, for tests and for timing the orchestration."""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..vectors import FloatMatrix

_WORD = re.compile(r"\w+")


@lru_cache(maxsize=65_536)
def _digest(word: str) -> int:
    """64 bits that are the same in every process, unlike `hash()`."""
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")


class HashEncoder:
    """Unit vectors from signed word counts (Weinberger et al. 2009, "hashing trick").

    Equal texts have cosine 1, and texts that share words a higher one than texts that do not; it
    ignores meaning. A text without words gets the first unit vector.

    >>> HashEncoder(8).encode_queries(["Ada Lovelace"]).shape
    (1, 8)
    """

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.name = f"hash-{dimension}"

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions; shape (n, dimension), float32, rows of unit length."""
        return self._encode(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages, like questions."""
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> FloatMatrix:
        matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for word in _WORD.findall(text.lower()):
                digest = _digest(word)
                row[(digest >> 1) % self.dimension] += 1.0 if digest & 1 else -1.0
            if not row.any():
                row[0] = 1.0
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix
