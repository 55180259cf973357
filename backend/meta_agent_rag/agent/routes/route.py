"""The definition of a route: an independent way to an answer, which then votes; and the call that most routes make."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ...discovery import by_name, contributed, require_functions, require_name
from ...errors import InputError, ModelError
from ...grounding.short_answer import without_disambiguation
from ...llm.messages import Sampling
from ..context import Context
from ..prompting import Packed, PlainReply, SecondAnswerReply, ThoughtReply, task
from ..signals import short_answer_logprob, with_logprobs
from .vote import DERIVATION, DRAFT, RouteAnswer

ENTRY_POINT_GROUP = "meta_agent_rag.routes"
_CONSTANT = "ROUTE"
RESERVED = (DERIVATION, DRAFT)
"""Reserved names: those of the ballots that no route casts."""


@dataclass(frozen=True, kw_only=True)
class RouteInput:
    """A route's input: the question, the evidence, and the round.

    `draw` is the number of earlier draws of this route, from 0: ROUTES may name a route that samples several times.
    """

    question: str
    packed: Packed
    round: int
    draw: int = 0


Run: TypeAlias = Callable[[Context, RouteInput], Awaitable[RouteAnswer]]
"""Raises only errors that must stop the run; any other failed call becomes the answer's `error`."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route by name; `about` is one clause for readers, `weight` (> 0) its weight in the vote."""

    name: str
    about: str
    run: Run
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_name("route", self.name, RESERVED)
        require_functions("route", self, "run")
        weight: object = self.weight
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise InputError(f"The route {self.name!r} has the weight {weight!r}; give a number above 0.")


Routes: TypeAlias = Mapping[str, Route]


def discover_routes(folder: Path | None = None) -> Routes:
    """The built-in routes, those of installed packages, and those of `folder` (ROUTES_DIR), by name.

    Raises `DuplicateNameError`, and `InputError` for a file that cannot be loaded.
    """
    found = contributed(__package__, _CONSTANT, Route, group=ENTRY_POINT_GROUP, folder=folder, setting="ROUTES_DIR")
    return by_name(found, "routes")


async def asked(
    context: Context,
    given: RouteInput,
    route: str,
    *,
    prompt: str,
    schema: type[SecondAnswerReply | PlainReply | ThoughtReply],
    sampling: Sampling | None = None,
) -> RouteAnswer:
    """The answer of a call with `prompt`. Raises only errors that must stop the run."""
    messages = task(context, prompt, given.question, given.packed)
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
        short_answer=without_disambiguation(reply.short_answer, given.packed.titles),
        steps=reply.said,
        logprob=short_answer_logprob(said, reply.short_answer),
    )
