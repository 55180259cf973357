"""The built-in routes: three ways to read the same evidence, none of which sees the draft."""

from dataclasses import replace

from ..context import Context
from ..prompting import PlainReply, SecondAnswerReply, ThoughtReply
from ..signals import with_logprobs
from .route import Route, RouteInput, asked
from .vote import RouteAnswer

_TEMPERATURE = 0.7


async def _plain_pass(context: Context, given: RouteInput) -> RouteAnswer:
    return await asked(context, given, "plain_pass", prompt="plain_pass", schema=PlainReply)


async def _step_by_step(context: Context, given: RouteInput) -> RouteAnswer:
    return await asked(context, given, "step_by_step", prompt="second_answer", schema=SecondAnswerReply)


async def _chain_of_thought(context: Context, given: RouteInput) -> RouteAnswer:
    """Sampled at a temperature, so that its errors differ from the draft's."""
    sampling = replace(with_logprobs(context, "route"), temperature=_TEMPERATURE, draw=given.draw + 1)
    return await asked(context, given, "chain_of_thought", prompt="think_aloud", schema=ThoughtReply, sampling=sampling)


ROUTE = (
    Route(name="plain_pass", about="answers from the evidence at once, without quotes or steps", run=_plain_pass),
    Route(name="step_by_step", about="works the question out hop by hop, without seeing the draft", run=_step_by_step),
    Route(name="chain_of_thought", about="thinks aloud, drawn at a temperature", run=_chain_of_thought),
)
