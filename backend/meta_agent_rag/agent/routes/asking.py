"""A route's call: its own prompt over the shared evidence, with a reply that ends in a short answer."""

from ...errors import ModelError
from ...grounding.short_answer import without_disambiguation
from ...llm.messages import Sampling
from ..context import Context
from ..monitoring.signals import short_answer_logprob, with_logprobs
from ..prompting.messages import task
from ..prompting.packing import Packed
from ..prompting.replies import PlainReply, SecondAnswerReply, ThoughtReply
from .ballot import RouteAnswer
from .route import RouteInput


async def asked(
    context: Context,
    given: RouteInput,
    route: str,
    *,
    prompt: str,
    schema: type[SecondAnswerReply | PlainReply | ThoughtReply],
    packed: Packed | None = None,
    sampling: Sampling | None = None,
) -> RouteAnswer:
    """The answer of a call with `prompt`, over `packed` or all evidence. Raises only errors that must stop the run."""
    shown = packed if packed is not None else given.packed
    messages = task(context, prompt, given.question, shown)
    try:
        reply, said = await context.model.aparse(
            "route", messages, schema, round_=given.round, sampling=sampling or with_logprobs(context, "route")
        )
    except ModelError as error:
        if error.stops_run:
            raise
        return RouteAnswer(route=route, short_answer="", error=str(error))
    return RouteAnswer(
        route=route,
        short_answer=without_disambiguation(reply.short_answer, shown.titles),
        steps=reply.said,
        logprob=short_answer_logprob(said, reply.short_answer),
    )
