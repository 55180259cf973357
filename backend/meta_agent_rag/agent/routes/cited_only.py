"""Answers from only the passages that support the draft and the derivation."""

from ..context import Context
from ..prompting import PlainReply
from .route import Route, RouteInput, asked
from .vote import RouteAnswer


async def _run(context: Context, given: RouteInput) -> RouteAnswer:
    if not given.cited.texts or len(given.cited.texts) == len(given.packed.texts):
        return RouteAnswer(route="cited_only", short_answer="", error="all passages are cited, so none can be left out")
    return await asked(context, given, "cited_only", prompt="plain_pass", schema=PlainReply, packed=given.cited)


ROUTE = Route(name="cited_only", about="reads only the passages that draft and derivation cite", run=_run)
