"""Answers from only the passages that support the draft and the derivation."""

from ..context import Context
from ..prompting.replies import PlainReply
from .asking import asked
from .ballot import RouteAnswer
from .route import Leg, Route


async def _walk(context: Context, leg: Leg) -> RouteAnswer:
    if not leg.cited.texts or len(leg.cited.texts) == len(leg.packed.texts):
        return RouteAnswer(route="cited_only", short_answer="", error="all passages are cited, so none can be left out")
    return await asked(context, leg, "cited_only", prompt="plain_pass", schema=PlainReply, packed=leg.cited)


ROUTE = Route(name="cited_only", about="reads only the passages that draft and derivation cite", walk=_walk)
