"""Answers from the evidence directly, in a single pass."""

from ..context import Context
from ..prompting import PlainReply
from .route import Route, RouteInput, asked
from .vote import RouteAnswer


async def _run(context: Context, given: RouteInput) -> RouteAnswer:
    return await asked(context, given, "plain_pass", prompt="plain_pass", schema=PlainReply)


ROUTE = Route(name="plain_pass", about="answers from the evidence at once, without quotes or steps", run=_run)
