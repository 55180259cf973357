"""The table of a recorded run: its rows, deficits and analyses by name, regardless of the current code."""

from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.llm.pricing import Tariff

from ..analyses.economy import newest_tariffs
from ..methods import Method, MethodTask
from ..run.arms import Arm

Quadrant = tuple[bool, bool]


def table_content(
    arms: Sequence[Arm], *, quadrants: Mapping[str, Quadrant | None], analyses: Sequence[str]
) -> dict[str, Any]:
    """The table's part of a record's first line; `quadrants` are those of the deficits, by name.

    The newest prices of each tier are recorded too: the analyses of this summary use them.
    """
    prices = {tier: tariff.model_dump(mode="json", by_alias=True) for tier, tariff in newest_tariffs().items()}
    return {
        "arms": [_arm_content(arm) for arm in arms],
        "quadrants": dict(quadrants),
        "analyses": list(analyses),
        "tariffs": prices,
    }


def arms_from(run: Mapping[str, Any]) -> tuple[Arm, ...]:
    """The rows of the table, even if their methods or settings no longer exist; damage raises its own errors."""
    return tuple(_arm(content) for content in run.get("arms", ()))


def quadrants_from(run: Mapping[str, Any]) -> dict[str, Quadrant | None]:
    """The quadrants of the deficits when the record was made, by name."""
    return {name: None if found is None else (found[0], found[1]) for name, found in run.get("quadrants", {}).items()}


def tariffs_from(run: Mapping[str, Any]) -> dict[str, Tariff]:
    """The prices of each tier when the record was made."""
    return {tier: Tariff.model_validate(content) for tier, content in run.get("tariffs", {}).items()}


def _arm_content(arm: Arm) -> dict[str, Any]:
    return {
        "method": arm.method.name,
        "quotes": arm.method.quotes,
        "loop": arm.method.loop,
        "assignments": list(arm.assignments),
        "without_deficits": list(arm.without_deficits),
        "oracles": list(arm.oracles),
        "equal": arm.equal,
        "repeat": arm.repeat,
    }


def _arm(content: Mapping[str, Any]) -> Arm:
    return Arm(
        method=Method(
            name=content["method"],
            citation="",
            about="",
            departures="",
            answer=_answered,
            quotes=content["quotes"],
            loop=content["loop"],
        ),
        assignments=tuple(content["assignments"]),
        without_deficits=tuple(content["without_deficits"]),
        oracles=tuple(content["oracles"]),
        equal=content.get("equal", ""),
        repeat=content["repeat"],
    )


async def _answered(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} to {task.id!r} is recorded; a replay makes no call.")
