"""The mode of a conversation: plain, a teacher who explains, or a coach who asks."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ...errors import InputError, UnknownNameError
from .levels import levels

Mode: TypeAlias = Literal["", "teacher", "coach"]
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, kw_only=True)
class Socratic:
    """Mode and level of a conversation; they may change between any two turns.

    An empty mode is the plain companion. `level` applies only to the coach; `topic` is the one that the
    learner chose, empty for any.
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
