"""How a conversation is held: plainly, by a teacher who explains, or by a coach who asks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from ...errors import DataFileError, InputError, UnknownNameError
from .levels import levels

Mode: TypeAlias = Literal["", "teacher", "coach"]
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, kw_only=True)
class Socratic:
    """Mode and level of a conversation; they may change between any two turns.

    An empty mode is the plain companion. `level` counts for the coach alone, and `topic` is the one that the
    learner chose to stay with, empty for any.
    """

    mode: Mode = ""
    level: int = 1
    topic: str = ""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UnknownNameError("mode", self.mode, [mode for mode in MODES if mode])
        if isinstance(self.level, bool) or self.level not in levels():
            known = ", ".join(map(str, levels()))
            raise InputError(f"There is no level {self.level!r}; choose from: {known}.")


PLAIN = Socratic()
"""The plain companion."""


def as_json(socratic: Socratic) -> dict[str, Any]:
    """Mode, level and topic as plain JSON values."""
    return asdict(socratic)


def from_json(raw: object) -> Socratic:
    """What `as_json` gave; `None`, as in sessions of an earlier version, is the plain companion.

    Raises `DataFileError`.
    """
    if raw is None:
        return Socratic()
    if not isinstance(raw, Mapping) or not isinstance(raw.get("topic", ""), str):
        raise DataFileError(f"A stored conversation has 'socratic' = {str(raw)[:80]!r}; start a new session.")
    try:
        return Socratic(mode=raw.get("mode", ""), level=raw.get("level", 1), topic=raw.get("topic", ""))
    except (InputError, TypeError) as error:
        raise DataFileError(f"A stored conversation cannot be read ({error}) Start a new session.") from None
