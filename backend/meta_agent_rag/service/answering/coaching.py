"""The coach behind HTTP: a question instead of an answer, with the same deadline and record."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...agent.engine import Engine
from ...chat.coach.coach import Coach, CoachReply
from ...chat.coach.levels import Socratic
from ...chat.coach.scope import TopicScope, subject_of, topic_named
from ...chat.history import History
from ...chat.intent import Interpretation
from ...retrieval.hybrid import HybridRetriever, Retriever
from ..request_record import RequestRecord


@dataclass(frozen=True, kw_only=True)
class _Held:
    """A coach, and the version of the corpus from which its topics were read."""

    coach: Coach
    version: int


@dataclass(frozen=True, kw_only=True)
class Coaches:
    """One coach per corpus; its topics are read on its first message, and again after the corpus has changed."""

    engine: Engine
    retrievers: Mapping[str, Retriever]
    _held: dict[str, _Held] = field(default_factory=dict, repr=False)

    async def reply(
        self,
        message: str,
        *,
        record: RequestRecord,
        retriever: Retriever,
        level: int,
        topic: str,
        history: History,
        reading: Interpretation,
        deadline: float,
    ) -> CoachReply:
        """The coach's reply, searched with `retriever`. Raises the errors of `Coach`; `UnknownNameError` for topics."""
        coach = await self._coach(record.corpus or "")
        if topic:
            topic_named(coach.topics, topic)
        return await replace(coach, retriever=retriever)(
            message,
            history=history,
            socratic=Socratic(mode="coach", level=level, topic=topic),
            reading=reading,
            deadline=deadline,
            question_id=record.query_id,
        )

    async def _coach(self, corpus: str) -> Coach:
        settings, retriever = self.engine.settings, self.retrievers[corpus]
        held, version = self._held.get(corpus), await asyncio.to_thread(_version, retriever)
        if held is None or held.version != version:
            known = retriever if isinstance(retriever, HybridRetriever) else None
            catalogue = None if known is None else known.corpus.catalogue
            subject = await asyncio.to_thread(subject_of, settings.scope_topics, catalogue)
            encoder = self.engine.monitor_encoder if known is None else known.encoder
            scope = TopicScope(subject=subject, encoder=encoder, threshold=settings.scope_threshold)
            coach = Coach(model=self.engine.model, retriever=retriever, scope=scope, topics=subject.topics)
            self._held[corpus] = held = _Held(coach=coach, version=version)
        return held.coach


def _version(retriever: Retriever) -> int:
    return retriever.corpus.catalogue.version() if isinstance(retriever, HybridRetriever) else 0
