"""Thinks aloud, sampled at a temperature, so that its errors differ from the draft's."""

from dataclasses import replace

from ..context import Context
from ..prompting import ThoughtReply
from ..signals import with_logprobs
from .route import Route, RouteInput, asked
from .vote import RouteAnswer

_TEMPERATURE = 0.7


async def _run(context: Context, given: RouteInput) -> RouteAnswer:
    sampling = replace(with_logprobs(context, "route"), temperature=_TEMPERATURE, draw=given.draw + 1)
    return await asked(context, given, "chain_of_thought", prompt="think_aloud", schema=ThoughtReply, sampling=sampling)


ROUTE = Route(name="chain_of_thought", about="thinks aloud, drawn at a temperature", run=_run)
