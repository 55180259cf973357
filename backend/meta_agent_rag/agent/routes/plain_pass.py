"""Answers from the evidence directly, in a single pass."""

from ..context import Context
from ..prompting.replies import PlainReply
from .asking import asked
from .ballot import RouteAnswer
from .route import Route, RouteInput


async def _run(context: Context, given: RouteInput) -> RouteAnswer:
    return await asked(context, given, "plain_pass", prompt="plain_pass", schema=PlainReply)


ROUTE = Route(name="plain_pass", about="answers from the evidence at once, without quotes or steps", run=_run)
