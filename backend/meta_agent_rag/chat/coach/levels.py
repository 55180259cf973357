"""The coach's levels, from `levels.yaml`: the length of a reply, its style, and fallback questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ..own_files import folder_in_use, rows_of


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
    rows = rows_of("levels", folder)
    longest = rows[min(rows)]["limit"]
    return MappingProxyType({number: _level(number, rows[number], longest) for number in sorted(rows)})


def _level(number: int, row: Mapping[str, object], hint_limit: int) -> Level:
    templates = row["templates"]
    assert isinstance(templates, dict)
    limit = row["limit"]
    assert isinstance(limit, int)
    return Level(
        number=number,
        name=str(row["name"]),
        limit=limit,
        hint_limit=hint_limit,
        style=str(row["style"]).strip(),
        constraint=str(row["constraint"]).strip(),
        templates=MappingProxyType({language: tuple(questions) for language, questions in templates.items()}),
    )
