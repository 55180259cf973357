"""Compares two documents by their points: a model groups them, and code keeps every point unchanged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator

from ...agent.prompting import MARK, ReplyModel, Short
from ...errors import InputError
from ...llm.ledger import LedgerRow, Totals, total
from ...llm.messages import Message
from ...prompts import prompt
from ...prompts.fencing import attribute, fenced
from ...prompts.tokens import estimate_tokens, max_bytes
from ...text.figures.figure import stands_in
from ...text.figures.reading import figures, in_digits
from .estimate import Estimate, estimate
from .overview import STAGE, OnSection, Overview, Summary, Work
from .points import Point

Relation = Literal["agree", "differ", "related"]


def _numbers(value: object) -> object:
    """Numbers of points, also in the form `A3`."""
    if not isinstance(value, list):
        return value
    return [int(digits) for one in value if (digits := str(one).strip("ABab .#"))[:1].isdigit() and digits.isdigit()]


def _relation(value: object) -> object:
    return value if value in ("agree", "differ") else "related"


class SaidAspect(ReplyModel):
    """What two documents are compared by, with the numbers of their points."""

    aspect: Short
    first: Annotated[tuple[int, ...], BeforeValidator(_numbers)] = ()
    second: Annotated[tuple[int, ...], BeforeValidator(_numbers)] = ()
    relation: Annotated[Relation, BeforeValidator(_relation)] = "related"


class AspectsReply(ReplyModel):
    """Stage `overview`, for a comparison."""

    aspects: list[SaidAspect]


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """Points of both documents on the same subject; `name` and `relation` are the model's words."""

    name: str
    relation: Relation
    first: tuple[Point, ...]
    second: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two documents side by side: what both cover, then what only one covers.

    `uncompared` counts the points that did not fit into the prompt; they are listed under their own document.
    """

    first: Overview
    second: Overview
    aspects: tuple[Aspect, ...]
    only_first: tuple[Point, ...]
    only_second: tuple[Point, ...]
    uncompared: int
    calls: tuple[LedgerRow, ...]

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost."""
        return total(self.calls)


def estimated(work: Work) -> Estimate:
    """The estimated effort of a comparison. Raises `InputError` if the work does not have two documents."""
    _require_two(work)
    sections, room = work.estimate, work.model.evidence_tokens()
    served, _ = work.model.serving(STAGE)
    last = estimate(work.model, STAGE, [_compare_prompt(work, "x" * max_bytes(room), "")], AspectsReply)
    unused = max(room - sections.calls * served.max_tokens, 0)  # short documents have fewer points than fit
    return sections + replace(last, prompt_tokens=last.prompt_tokens - unused)


async def compared(work: Work, on_section: OnSection | None = None) -> Comparison:
    """Compare the two documents of the work. Raises `InputError` if there are not two, and a `ModelError`."""
    _require_two(work)
    summary = await work.done(on_section)
    first, second = summary.overviews
    if not first.points or not second.points:
        return _without_aspects(summary)
    shown = _that_fit(first.points, second.points, work.model.evidence_tokens())
    session = work.model.session("comparison", method="overview")
    listed = _listed("A", first.points[: shown[0]]), _listed("B", second.points[: shown[1]])
    reply = await session.ainvoke(STAGE, _compare_prompt(work, *listed), AspectsReply)
    aspects = tuple(_aspects(reply, first.points[: shown[0]], second.points[: shown[1]]))
    grouped = {id(point) for aspect in aspects for point in (*aspect.first, *aspect.second)}
    return Comparison(
        first=first,
        second=second,
        aspects=aspects,
        only_first=tuple(point for point in first.points if id(point) not in grouped),
        only_second=tuple(point for point in second.points if id(point) not in grouped),
        uncompared=len(first.points) + len(second.points) - sum(shown),
        calls=(*summary.calls, *session.rows),
    )


def _require_two(work: Work) -> None:
    if len(work.documents) != 2:
        raise InputError("A comparison needs two different documents; give both by title or file.")


def _compare_prompt(work: Work, first_points: str, second_points: str) -> tuple[Message, ...]:
    first, second = (attribute(one.document.title) for one in work.documents)
    text = prompt("compare", work.model.settings.prompts_dir).text(
        first=first, second=second, first_points=first_points, second_points=second_points
    )
    return (Message(role="user", content=text),)


def _without_aspects(summary: Summary) -> Comparison:
    first, second = summary.overviews
    return Comparison(
        first=first,
        second=second,
        aspects=(),
        only_first=first.points,
        only_second=second.points,
        uncompared=0,
        calls=summary.calls,
    )


def _that_fit(first: Sequence[Point], second: Sequence[Point], budget: int) -> tuple[int, int]:
    """The number of points shown of each document: equally many, as long as both have some."""
    shown, used = [0, 0], 0
    for place in range(max(len(first), len(second))):
        for side, points in enumerate((first, second)):
            if place < len(points):
                used += estimate_tokens(points[place].bare) + 5
                if used > budget:
                    return shown[0], shown[1]
                shown[side] += 1
    return shown[0], shown[1]


def _listed(letter: str, points: Sequence[Point]) -> str:
    """The points as data, each on one line."""
    lines = (" ".join(point.bare.split()) for point in points)
    return fenced("\n".join(f"{letter}{number}. {MARK} {line}" for number, line in enumerate(lines, start=1)))


def _aspects(reply: AspectsReply, first: Sequence[Point], second: Sequence[Point]) -> Iterator[Aspect]:
    """The aspects that both documents cover; a point counts where it is named first."""
    used: set[tuple[int, int]] = set()
    for said in reply.aspects:
        sides: list[tuple[Point, ...]] = []
        for side, (numbers, points) in enumerate(((said.first, first), (said.second, second))):
            new = [n for n in dict.fromkeys(numbers) if 1 <= n <= len(points) and (side, n) not in used]
            sides.append(tuple(points[n - 1] for n in new))
        if all(sides):
            used.update((0, number) for number in said.first)
            used.update((1, number) for number in said.second)
            yield Aspect(name=said.aspect, relation=_checked(said.relation, *sides), first=sides[0], second=sides[1])


def _checked(relation: Relation, first: Sequence[Point], second: Sequence[Point]) -> Relation:
    """The model's relation, unless it says that points agree although they share no figure."""
    ours, theirs = ([one for point in side for one in figures(in_digits(point.bare))] for side in (first, second))
    shared = any(stands_in(one, theirs) for one in ours) or any(stands_in(one, ours) for one in theirs)
    return "related" if relation == "agree" and ours and theirs and not shared else relation
