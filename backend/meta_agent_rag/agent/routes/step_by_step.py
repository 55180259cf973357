"""Solves the question hop by hop, without seeing the draft."""

from ..context import Context
from ..prompting.replies import ReferenceReply
from .asking import asked
from .ballot import RouteAnswer
from .route import Leg, Route


async def _walk(context: Context, leg: Leg) -> RouteAnswer:
    return await asked(context, leg, "step_by_step", prompt="reference", schema=ReferenceReply)


ROUTE = Route(name="step_by_step", about="works the question out hop by hop, without seeing the draft", walk=_walk)
