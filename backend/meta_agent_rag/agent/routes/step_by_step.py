"""Solves the question hop by hop, without seeing the draft."""

from ..context import Context
from ..prompting import SecondAnswerReply
from .route import Route, RouteInput, asked
from .vote import RouteAnswer


async def _run(context: Context, given: RouteInput) -> RouteAnswer:
    return await asked(context, given, "step_by_step", prompt="second_answer", schema=SecondAnswerReply)


ROUTE = Route(name="step_by_step", about="works the question out hop by hop, without seeing the draft", run=_run)
