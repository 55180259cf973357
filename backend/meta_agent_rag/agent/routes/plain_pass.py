"""Answers from the evidence directly, in a single pass."""

from ..context import Context
from ..prompting.replies import PlainReply
from .asking import asked
from .ballot import RouteAnswer
from .route import Leg, Route


async def _walk(context: Context, leg: Leg) -> RouteAnswer:
    return await asked(context, leg, "plain_pass", prompt="plain_pass", schema=PlainReply)


ROUTE = Route(name="plain_pass", about="answers from the evidence at once, without quotes or steps", walk=_walk)
