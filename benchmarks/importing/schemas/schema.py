"""What a schema of predictions is: which part of a file holds its rows, and what one row says."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """An answer to a question, which is known by its id, its text, or both; `text` is `None` where it failed.

    `calls`, `prompt_tokens`, `completion_tokens` and `seconds` are what it took, where the file tells.
    """

    id: str | None
    question: str | None
    text: str | None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float | None = None


class PredictionRow(BaseModel):
    """A row of a file; fields that no score needs are passed over."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    @abstractmethod
    def prediction(self) -> Prediction:
        """What it says."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A schema by name, with the system that writes it and the file that it goes by.

    `rows` finds the rows in what was read (an object, or a list of rows), and gives `None` for another schema's file.
    `example` is a smallest valid file, on which the contract tests work.
    """

    name: str
    about: str
    rows: Callable[[object], Sequence[object] | None]
    row: type[PredictionRow]
    example: object


def list_with(*fields: str, without: str = "") -> Callable[[object], Sequence[object] | None]:
    """Finds the rows of a list whose first row has these fields, and not one of another schema."""

    def rows(value: object) -> Sequence[object] | None:
        first = value[0] if isinstance(value, list) and value else None
        fits = isinstance(first, Mapping) and first.keys() >= set(fields) and without not in first
        return value if fits and isinstance(value, list) else None

    return rows
