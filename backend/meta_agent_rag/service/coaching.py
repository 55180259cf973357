"""The coach behind HTTP: a question in place of an answer, within the same deadline and record."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ..agent.engine import Engine
from ..conversation.history import History
from ..conversation.socratic.coach import Coach, CoachReply
from ..conversation.socratic.hook import Scope
from ..conversation.socratic.mode import Socratic
from ..conversation.socratic.topics import Topic, TopicScope, corpus_topics, read_topics
from ..conversation.study import open_scope
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..settings import Settings
from .inquiry import Inquiry


@dataclass(frozen=True, kw_only=True)
class Coaches:
    """One coach a corpus; what it keeps to is read at its first message."""

    engine: Engine
    retrievers: Mapping[str, Retriever]
    _coaches: dict[str, Coach] = field(default_factory=dict, repr=False)

    async def reply(
        self, message: str, *, inquiry: Inquiry, retriever: Retriever, level: int, history: History, deadline: float
    ) -> CoachReply:
        """The coach's reply, searched through `retriever`. Raises what `Coach` does."""
        corpus = inquiry.corpus or ""
        coach = self._coaches.get(corpus)
        if coach is None:
            scope = partial(_scope, self.engine, self.retrievers[corpus])
            coach = self._coaches[corpus] = Coach(model=self.engine.model, retriever=retriever, open_scope=scope)
        return await replace(coach, retriever=retriever)(
            message,
            history=history,
            socratic=Socratic(mode="coach", level=level),
            deadline=deadline,
            question_id=inquiry.query_id,
        )


async def _scope(engine: Engine, retriever: Retriever) -> Scope | None:
    settings = engine.settings
    topics = _topics(settings, retriever)
    if not topics or settings.scope_encoder != settings.monitor_encoder:
        return await open_scope(settings, topics)
    # the same encoder is there already: the first message need not wait until it is loaded
    return TopicScope(topics=topics, encoder=engine.monitor_encoder, threshold=settings.scope_threshold)


def _topics(settings: Settings, retriever: Retriever) -> tuple[Topic, ...]:
    if settings.scope_topics is not None:
        return read_topics(settings.scope_topics)
    return corpus_topics(retriever.corpus.catalogue) if isinstance(retriever, HybridRetriever) else ()
