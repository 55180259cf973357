"""What a schema of predictions is: which part of a file contains its rows, and what one row means."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """An answer to a question, which is identified by id, text, or both; `text` is `None` if it failed.

    `calls`, `prompt_tokens`, `completion_tokens` and `seconds` are its cost, if the file states it.
    """

    id: str | None
    question: str | None
    text: str | None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float | None = None


class PredictionRow(BaseModel, frozen=True, strict=True, extra="ignore"):
    """A row of a file; fields that no score needs are ignored."""

    @abstractmethod
    def prediction(self) -> Prediction:
        """The row as a prediction."""


class NamedRow(PredictionRow):
    """A row that names its question by id, by text, or by both, which must then agree."""

    id: str | None = None
    question: str | None = None
    text: str | None

    def prediction(self) -> Prediction:
        """The row as it is."""
        return Prediction(id=self.id, question=self.question, text=self.text)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A schema by name, with the system and the file that it describes.

    `rows` finds the rows in the parsed file (an object, or a list of rows), and returns `None` for a file of another
    schema. `example` is a minimal valid file for the contract tests.
    """

    name: str
    about: str
    rows: Callable[[object], Sequence[object] | None]
    row: type[PredictionRow]
    example: object


def list_with(*fields: str, without: str = "") -> Callable[[object], Sequence[object] | None]:
    """Finds the rows of a list whose first row has these fields, and none of another schema's."""

    def rows(value: object) -> Sequence[object] | None:
        first = value[0] if isinstance(value, list) and value else None
        fits = isinstance(first, Mapping) and first.keys() >= set(fields) and without not in first
        return value if fits and isinstance(value, list) else None

    return rows
