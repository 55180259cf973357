"""The coach's levels, from `levels.yaml`, and the mode of a conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import TypeAdapter

from ...errors import InputError, UnknownNameError
from ..phrases import folder_in_use, rows_of

Mode: TypeAlias = Literal["", "teacher", "coach"]
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level. `limit` is the longest reply in characters as a reader counts them, `hint_limit` the longest hint.

    `style` and `constraint` are sent to the model; `templates` are questions that fit any subject, by language.
    """

    number: int
    name: str
    limit: int
    hint_limit: int
    style: str
    constraint: str
    templates: Mapping[str, tuple[str, ...]]

    def questions(self, language: str, turn: int) -> tuple[str, ...]:
        """All of its questions in a language (English if it has none in that), beginning with that of the turn."""
        questions = self.templates.get(language, self.templates["en"])
        first = turn % len(questions)
        return (*questions[first:], *questions[:first])


def levels() -> Mapping[int, Level]:
    """All levels in use by number, in ascending order. A hint may be as long as the first level's replies."""
    return _levels(folder_in_use())


@cache
def _levels(folder: Path | None) -> Mapping[int, Level]:
    rows: Mapping[int, Any] = rows_of("levels", folder)
    known = {"hint_limit": rows[min(rows)]["limit"]}
    read = TypeAdapter(Level).validate_python
    return {number: read({**rows[number], **known, "number": number}) for number in sorted(rows)}


@dataclass(frozen=True, kw_only=True)
class Socratic:
    """Mode and level of a conversation; they may change between any two turns.

    An empty mode is the plain one. `level` applies only to the coach; `topic` is the one that the learner chose, empty
    for any.
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
"""The plain mode."""
