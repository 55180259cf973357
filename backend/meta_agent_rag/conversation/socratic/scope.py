"""Whether a message is in scope of a corpus: nearer to it than to anything else that people ask about.

A single cosine says little, since encoders differ and corpora are broad or narrow. Therefore, a message is compared
with the corpus and with general questions (`generic.yaml`); its score is the margin by which the corpus is nearer.
The required margin is calibrated for each corpus with a second set of general questions, which must be rejected.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...retrieval.batching import AsyncEncoder
from ...retrieval.vectors import FloatMatrix
from ..own_files import folder_in_use, rows_of
from .hook import ScopeScore
from .topics import MOST_ANCHORS, Subject, topic_named

_STRANGERS_TURNED_AWAY = 0.95


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """Rows to compare messages with, the topic number of each, the rivals' rows, and the threshold."""

    rows: FloatMatrix
    owners: NDArray[np.int64]
    rivals: FloatMatrix
    threshold: float = 0.0

    def margins(self, vectors: FloatMatrix, owner: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each vector, the margin by which the nearest row beats the nearest rival, and that row's number."""
        cosines = vectors @ self.rows.T
        if owner is not None:
            cosines = np.where(self.owners == owner, cosines, -np.inf)
        return cosines.max(axis=1) - (vectors @ self.rivals.T).max(axis=1), cosines.argmax(axis=1)


@dataclass(frozen=True, kw_only=True)
class TopicScope:
    """A `Scope` over a subject; everything is encoded once, on the first message.

    Without a `threshold` it is calibrated. `encoder` must be the one that encoded the subject's passages.
    """

    subject: Subject
    encoder: AsyncEncoder
    threshold: float | None = None
    _known: list[_Compared] = field(default_factory=list, compare=False, repr=False)
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def score(self, message: str, topic: str = "") -> ScopeScore | None:
        """See `Scope`. Raises `UnknownNameError` for an unknown topic."""
        topics = self.subject.topics
        owner = topics.index(topic_named(topics, topic)) if topic else None
        compared = await self._compared()
        if compared is None:
            return None
        (margin,), (nearest,) = compared.margins(await self.encoder.queries([message]), owner)
        if not np.isfinite(margin):
            return None
        return ScopeScore(
            topic=topics[compared.owners[nearest]].name, score=float(margin), threshold=compared.threshold
        )

    async def _compared(self) -> _Compared | None:
        async with self._encoding:
            if not self._known and self.subject.topics:
                self._known.append(await self._encoded())
        return self._known[0] if self._known else None

    async def _encoded(self) -> _Compared:
        named = [(number, text) for number, topic in enumerate(self.subject.topics) for text in topic.anchors]
        named = named[:MOST_ANCHORS]
        anchors = await self.encoder.passages([text for _, text in named])
        rivals = await self.encoder.passages(rows_of("generic", folder_in_use())["rivals"])
        has_passages = len(self.subject.owners) > 0
        compared = _Compared(
            rows=np.concatenate([anchors, self.subject.vectors]) if has_passages else anchors,
            owners=np.array([*(number for number, _ in named), *self.subject.owners], dtype=np.int64),
            rivals=rivals,
        )
        threshold = self.threshold
        if threshold is None:
            margins, _ = compared.margins(await self.encoder.queries(rows_of("generic", folder_in_use())["strangers"]))
            threshold = float(np.quantile(margins, _STRANGERS_TURNED_AWAY))
        return _Compared(rows=compared.rows, owners=compared.owners, rivals=rivals, threshold=threshold)
