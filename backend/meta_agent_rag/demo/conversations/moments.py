"""The handling of one message, as shown by both conversations of the demo."""

import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from uuid import uuid4

from ...agent.engine import Step
from ...chat.history import History
from ...chat.session import ChatSession, Turn
from ...errors import MetaRagError
from ..loop.walk import unexpected
from ..streams import Finished, Streams, StreamStopped, watched
from .trail import Message, Trail, assistant_message, failure_message, rounds_of, stopped, summary, visitor_message

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The state of a chat at a moment: the `messages` since and including the question.

    `turn` is set once there is an answer; `history` is the remembered conversation, set only with the last moment, and
    not if it was `given_up`.
    """

    messages: list[Message]
    turn: Turn | None = None
    notes: tuple[str, ...] = ()
    history: History | None = None
    given_up: bool = False

    @property
    def is_last(self) -> bool:
        """Is this the final moment?"""
        return self.given_up or self.history is not None


class Opening(Protocol):
    """Opens a visitor's conversation with the resources to answer in it."""

    async def __call__(self, history: History, tell: Callable[[Step], None]) -> ChatSession:
        """The conversation in its current state; `tell` is called with the loop's steps. Raises a `MetaRagError`."""


async def stoppable_moments(
    streams: Streams, visitor: str, opening: Opening, message: str, history: History
) -> AsyncGenerator[Moment, None]:
    """The `moments` after a visitor's message, until they are stopped or dropped."""
    last = Moment(messages=[visitor_message(message)])
    async for moment in streams.run(visitor, moments(opening, message, history)):
        if isinstance(moment, StreamStopped):
            yield replace(last, messages=stopped(last.messages), history=None, given_up=True)
        else:
            last = moment
            yield moment


async def moments(opening: Opening, message: str, history: History) -> AsyncGenerator[Moment, None]:
    """The events after a message, as they happen. Closing the stream stops the work; nothing is then remembered."""
    trail = Trail(id=uuid4().hex)
    question = visitor_message(message)
    yield Moment(messages=[question, *trail.messages])
    try:
        async for event in watched(partial(_replied, opening, message, history)):
            if isinstance(event, Finished):
                conversation, turn = event.result
            else:
                trail.begin(event)
                yield Moment(messages=[question, *trail.messages])
        trail.end(summary(turn), rounds_of(turn))
        messages = [question, *trail.messages, assistant_message(turn.reply.text.strip() or turn.reply.short_answer)]
        yield Moment(messages=messages, turn=turn, notes=turn.notes)
        notes = await conversation.settle()
        yield Moment(messages=messages, turn=turn, notes=(*turn.notes, *notes), history=conversation.history)
    except Exception as fault:  # noqa: BLE001  # the last handler: logs it and informs the visitor
        trail.end("Not answered")
        if not isinstance(fault, MetaRagError):
            _LOG.exception("A message could not be answered.")
            fault = MetaRagError(unexpected(fault))
        yield Moment(messages=[question, *trail.messages, failure_message(fault)], given_up=True)


async def _replied(
    opening: Opening, message: str, history: History, tell: Callable[[Step], None]
) -> tuple[ChatSession, Turn]:
    conversation = await opening(history, tell)
    return conversation, await conversation.reply(message)
