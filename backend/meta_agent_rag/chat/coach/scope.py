"""Whether a message is in scope of a corpus: nearer to it than to anything else that people ask about.

A single cosine says little, since encoders differ and corpora are broad or narrow. Therefore, a message is compared
with the corpus and with general questions (`generic.yaml`); its score is the margin by which the corpus is nearer.
The required margin is calibrated for each corpus with a second set of general questions, which must be rejected.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...retrieval.batching import AsyncEncoder
from ...retrieval.vectors import FloatMatrix
from ..own_files import folder_in_use, rows_of
from .hook import ScopeScore
from .topics import MOST_ANCHORS, Subject, topic_named

_STRANGERS_TURNED_AWAY = 0.95
_STRANGERS_TURNED_AWAY_AS_REPLIES = 0.8
"""Chosen on the first half of tests/coaching/replies.yaml, with all-MiniLM-L6-v2."""


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """Rows to compare messages with, the topic number of each, the rows of rivals and strangers, and the threshold."""

    rows: FloatMatrix
    owners: NDArray[np.int64]
    rivals: FloatMatrix
    strangers: FloatMatrix
    threshold: float

    def margins(
        self, vectors: FloatMatrix, owner: int | None = None, asked: FloatMatrix | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each vector, the margin by which the nearest row beats the nearest rival, and that row's number.

        The question `asked` counts as one of the rows.
        """
        cosines = vectors @ self.rows.T
        if owner is not None:
            cosines = np.where(self.owners == owner, cosines, -np.inf)
        nearest = cosines.max(axis=1)
        if asked is not None:
            nearest = np.maximum(nearest, (vectors @ asked.T)[:, 0])
        return nearest - (vectors @ self.rivals.T).max(axis=1), cosines.argmax(axis=1)

    def as_reply(
        self, vector: FloatMatrix, asked: FloatMatrix, owner: int | None, *, fixed: bool
    ) -> tuple[float, float]:
        """The margin of a reply, and the threshold for replies to this question, unless the threshold is `fixed`."""
        (margin,), _ = self.margins(vector, owner, asked)
        if fixed:
            return float(margin), self.threshold
        strangers, _ = self.margins(self.strangers, owner, asked)
        return float(margin), float(np.quantile(strangers, _STRANGERS_TURNED_AWAY_AS_REPLIES))


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

    async def score(self, message: str, topic: str = "", *, asked: str = "") -> ScopeScore | None:
        """See `Scope`. Raises `UnknownNameError` for an unknown topic."""
        topics = self.subject.topics
        owner = topics.index(topic_named(topics, topic)) if topic else None
        compared = await self._compared()
        if compared is None:
            return None
        vectors = await self.encoder.queries([message, asked] if asked else [message])
        (margin,), (nearest,) = compared.margins(vectors[:1], owner)
        if not np.isfinite(margin):
            return None
        score, threshold = float(margin), compared.threshold
        if asked and score < threshold:
            score, threshold = compared.as_reply(vectors[:1], vectors[1:], owner, fixed=self.threshold is not None)
        return ScopeScore(topic=topics[compared.owners[nearest]].name, score=score, threshold=threshold)

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
        rows = np.concatenate([anchors, self.subject.vectors]) if has_passages else anchors
        compared = _Compared(
            rows=rows,
            owners=np.array([*(number for number, _ in named), *self.subject.owners], dtype=np.int64),
            rivals=rivals,
            strangers=await self.encoder.queries(rows_of("generic", folder_in_use())["strangers"]),
            threshold=0.0 if self.threshold is None else self.threshold,
        )
        if self.threshold is not None:
            return compared
        margins, _ = compared.margins(compared.strangers)
        return replace(compared, threshold=float(np.quantile(margins, _STRANGERS_TURNED_AWAY)))
