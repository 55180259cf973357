"""The coach behind HTTP: a question instead of an answer, within the same deadline and record."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ...agent.engine import Engine
from ...conversation.history import History
from ...conversation.socratic.coach import Coach, CoachReply
from ...conversation.socratic.hook import Scope
from ...conversation.socratic.mode import Socratic
from ...conversation.socratic.topics import Topic, TopicScope, corpus_topics, read_topics
from ...conversation.study import open_scope
from ...retrieval.hybrid import HybridRetriever, Retriever
from ...settings import Settings
from ..request_record import RequestRecord


@dataclass(frozen=True, kw_only=True)
class _Held:
    """A coach, the topics that it keeps to, and the version of the corpus that they were read from."""

    coach: Coach
    topics: tuple[Topic, ...]
    version: int


@dataclass(frozen=True, kw_only=True)
class Coaches:
    """One coach a corpus; what it keeps to is read at its first message, and again once the corpus has changed."""

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
        history: History,
        deadline: float,
    ) -> CoachReply:
        """The coach's reply, searched through `retriever`. Raises what `Coach` does."""
        coach = await self._coach(record.corpus or "")
        return await replace(coach, retriever=retriever)(
            message,
            history=history,
            socratic=Socratic(mode="coach", level=level),
            deadline=deadline,
            question_id=record.query_id,
        )

    async def _coach(self, corpus: str) -> Coach:
        settings, retriever = self.engine.settings, self.retrievers[corpus]
        held, version = self._held.get(corpus), await asyncio.to_thread(_version, retriever)
        if held is None or held.version != version:
            topics = await asyncio.to_thread(_topics, settings, retriever)
            if held is None or held.topics != topics:
                scope = partial(_scope, self.engine, topics)
                coach = Coach(model=self.engine.model, retriever=retriever, open_scope=scope)
                held = _Held(coach=coach, topics=topics, version=version)
            self._held[corpus] = held = replace(held, version=version)
        return held.coach


async def _scope(engine: Engine, topics: tuple[Topic, ...]) -> Scope | None:
    settings = engine.settings
    if not topics or settings.scope_encoder != settings.monitor_encoder:
        return await open_scope(settings, topics)
    # the same encoder is there already: the first message need not wait until it is loaded
    return TopicScope(topics=topics, encoder=engine.monitor_encoder, threshold=settings.scope_threshold)


def _version(retriever: Retriever) -> int:
    return retriever.corpus.catalogue.version() if isinstance(retriever, HybridRetriever) else 0


def _topics(settings: Settings, retriever: Retriever) -> tuple[Topic, ...]:
    if settings.scope_topics is not None:
        return read_topics(settings.scope_topics)
    return corpus_topics(retriever.corpus.catalogue) if isinstance(retriever, HybridRetriever) else ()
