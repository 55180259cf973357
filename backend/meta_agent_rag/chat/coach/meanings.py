"""Classifies a message by meaning if its words do not decide: an encoder finds the most similar sentences."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from ...retrieval.batching import AsyncEncoder
from ...retrieval.vectors import FloatMatrix
from ..own_files import folder_in_use, rows_of

Meaning: TypeAlias = Literal["gives_up", "right"]
_OPPOSITES: Mapping[Meaning, str] = {"gives_up": "goes_on", "right": "not_right"}
_MARGINS: Mapping[Meaning, float] = {"gives_up": 0.03, "right": 0.05}
"""The margin by which the mean cosine with the nearest sentences must exceed that with their opposites: fitted on the
first half of tests/coaching/meanings.yaml, with all-MiniLM-L6-v2, the default MONITOR_ENCODER."""
_LIKE_AT_ALL = 0.25
_NEAREST = 2


@dataclass(frozen=True, kw_only=True)
class Meanings:
    """Compares texts with the sentences of `meanings.yaml`, which are encoded once, on the first comparison."""

    encoder: AsyncEncoder
    _vectors: dict[str, FloatMatrix] = field(default_factory=dict, compare=False, repr=False)
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def any_means(self, texts: Sequence[str], meaning: Meaning) -> bool:
        """Is one of the texts more similar to the sentences of that meaning than to their opposites?"""
        if not texts:
            return False
        async with self._encoding:
            if not self._vectors:
                rows = rows_of("meanings", folder_in_use())
                self._vectors.update({name: await self.encoder.passages(texts) for name, texts in rows.items()})
        vectors = await self.encoder.passages(texts)
        near = self._nearness(vectors, meaning)
        margin = near - self._nearness(vectors, _OPPOSITES[meaning])
        return bool(np.any((near > _LIKE_AT_ALL) & (margin > _MARGINS[meaning])))

    def _nearness(self, vectors: FloatMatrix, name: str) -> FloatMatrix:
        nearest: FloatMatrix = np.sort(vectors @ self._vectors[name].T, axis=1)[:, -_NEAREST:].mean(axis=1)
        return nearest
