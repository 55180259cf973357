"""The export of a data set file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..discovery import require_functions
from .hub import Hub
from .question import Question
from .reading.rows import RawRows, read_json_rows

Aliases = Mapping[str, tuple[str, ...]]
"""Further gold answers by the id of an answer."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set: the source of its rows, and how a row becomes a question.

    `parse` takes a row of the official file or of the hub. It raises `pydantic.ValidationError` for a row of the
    wrong shape and returns `None` for a row that is not a question of this data set. `example` is a minimal valid
    row of the official file: the contract tests use it, and its fields identify this data set's files.
    `title` is the name as its authors write it; `packaged` names the file of `shipped` that is read if no other is
    given. `data_file` describes, for the documentation, the files that `--data-file` accepts.

        DATASET = Dataset(name="mine", hub=None, parse=parse, example={...})
    """

    name: str
    hub: Hub | None
    parse: Callable[[object, Aliases], Question | None]
    example: Mapping[str, object]
    read_rows: Callable[[Path], RawRows] = read_json_rows
    packaged: str | None = None
    takes_aliases: bool = False
    data_file: str = "a JSON list or JSON Lines of its rows"
    title: str = ""

    def __post_init__(self) -> None:
        require_functions("data set", self, "parse", "read_rows")

    @property
    def label(self) -> str:
        """The title, or the name if there is none."""
        return self.title or self.name
