"""One message of a visitor and all that follows, as both conversations of the demo show it."""

import logging
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from uuid import uuid4

from ...agent.engine import Step
from ...conversation.history import History
from ...conversation.turn import Conversation, Turn
from ...errors import MetaRagError
from ..loop.walk import unexpected
from ..streams import Finished, Streams, StreamStopped, watched
from .trail import Message, Trail, assistant_message, failure_message, rounds_of, stopped, summary, visitor_message

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a chat shows at a moment: the `messages` that came since the question, itself included.

    `turn` is there once the answer is; `history` is what is remembered, given with the last moment alone, and not
    where it was `given_up`.
    """

    messages: list[Message]
    turn: Turn | None = None
    notes: tuple[str, ...] = ()
    history: History | None = None
    given_up: bool = False

    @property
    def is_last(self) -> bool:
        """Does nothing follow?"""
        return self.given_up or self.history is not None


class Opening(Protocol):
    """Opens the conversation of a visitor, with what is needed to answer in it."""

    async def __call__(self, history: History, tell: Callable[[Step], None]) -> Conversation:
        """The conversation as it stands; `tell` is called with the loop's steps. Raises a `MetaRagError`."""


async def stoppable_moments(
    streams: Streams, visitor: str, opening: Opening, message: str, history: History
) -> AsyncGenerator[Moment, None]:
    """The `moments` after a visitor's message, until it is stopped or dropped."""
    last = Moment(messages=[visitor_message(message)])
    async for moment in streams.run(visitor, moments(opening, message, history)):
        if isinstance(moment, StreamStopped):
            yield replace(last, messages=stopped(last.messages), history=None, given_up=True)
        else:
            last = moment
            yield moment


async def moments(opening: Opening, message: str, history: History) -> AsyncGenerator[Moment, None]:
    """What happens after a message, as it happens. Closing the stream stops it, and nothing of it is remembered."""
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
        notes, _ = await conversation.settle()
        yield Moment(messages=messages, turn=turn, notes=(*turn.notes, *notes), history=conversation.history)
    except Exception as fault:  # noqa: BLE001  # the last one to look: it is logged, and the visitor is told
        trail.end("Not answered")
        if not isinstance(fault, MetaRagError):
            _LOG.exception("A message could not be answered.")
            fault = MetaRagError(unexpected(fault))
        yield Moment(messages=[question, *trail.messages, failure_message(fault)], given_up=True)


async def _replied(
    opening: Opening, message: str, history: History, tell: Callable[[Step], None]
) -> tuple[Conversation, Turn]:
    conversation = await opening(history, tell)
    return conversation, await conversation.reply(message)
