"""Finds the data sets by scanning folders, and loads questions by the name of a data set."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel
from pydantic import ValidationError as RowError

from ..discovery import by_name, calling, contributed, named, require_result
from ..errors import DataFileError, InputError
from ..shipped import shipped
from ..wording import first_fault
from .dataset import Aliases, Dataset, Question
from .hub import HubAccess, read_hub_rows
from .rows import RawRows, read_json_rows
from .schema import String, Text

ENTRY_POINT_GROUP = "meta_agent_rag.datasets"
Selection: TypeAlias = Callable[[Iterator[Question]], tuple[Question, ...]]


@dataclass(frozen=True, kw_only=True)
class LoadedQuestions:
    """Questions of a source, in order, and the identity of the data they were read from.

    `total` is the number of questions in the source, of which `questions` may be a selection. `revision` is the commit
    on the hub, if known.
    """

    questions: tuple[Question, ...]
    total: int
    source: str
    sha256: str
    aliases_sha256: str | None = None
    revision: str | None = None


def discover(folder: Path | None = None, *, package: str = __package__) -> Mapping[str, Dataset]:
    """The data sets of the package, of installed packages, and of `folder` (DATASETS_DIR), by name."""
    return by_name(
        contributed(package, "DATASET", Dataset, group=ENTRY_POINT_GROUP, folder=folder, setting="DATASETS_DIR"),
        "data sets",
    )


def load_questions(
    name: str,
    *,
    data_file: Path | None = None,
    aliases_file: Path | None = None,
    registry: Mapping[str, Dataset] | None = None,
    most: int | None = None,
    access: HubAccess | None = None,
    select: Selection = tuple,
) -> LoadedQuestions:
    """Read a data set from the given file, else from the package, else from the hub (at most `most` rows).

    `access` holds the token and the revision for the hub. `select` takes what it needs from all questions, which are
    read one by one, so that a small selection from a large file needs little memory; every row is checked.

    Raises `UnknownNameError`, `InputError` for aliases if the data set does not support them, and
    `DataFileError` with the file, the row from 1 and the field.
    """
    dataset = named("data set", name, discover() if registry is None else registry)
    if aliases_file is not None and not dataset.takes_aliases:
        raise InputError(f"The data set {name!r} does not support a file of aliases; leave --aliases out.")
    if access is not None and access.revision is not None and dataset.hub is None and data_file is None:
        raise InputError(
            f"The data set {name!r} is included in the package and has no revisions; leave --revision out."
        )
    raw = _raw(dataset, data_file, most, access)
    aliases, aliases_sha256 = _aliases(aliases_file) if aliases_file is not None else ({}, None)
    reading = _RowReading(raw=raw, dataset_of=lambda row: dataset, aliases=aliases, of=f" of {name!r}")
    questions = select(reading.questions())
    if aliases_file is not None and not reading.aliased:
        raise DataFileError(
            f"{aliases_file.name} has no alias for any answer of {raw.source}; "
            "the rows must contain the field 'answer_id', as in the official file."
        )
    return LoadedQuestions(
        questions=questions,
        total=len(reading.row_of),
        source=raw.source,
        sha256=raw.sha256,
        aliases_sha256=aliases_sha256,
        revision=raw.revision,
    )


def load_file(path: Path, *, registry: Mapping[str, Dataset] | None = None) -> LoadedQuestions:
    """Read a file of an unnamed data set: each row goes to the data set whose example shares most fields with it.

    Raises `DataFileError` with the file, the row from 1 and the field.
    """
    known = tuple((discover() if registry is None else registry).values())
    raw = read_json_rows(path)
    reading = _RowReading(raw=raw, dataset_of=lambda row: max(known, key=partial(_likeness, row)), aliases={})
    questions = tuple(reading.questions())
    return LoadedQuestions(questions=questions, total=len(questions), source=raw.source, sha256=raw.sha256)


class _AliasRow(BaseModel, frozen=True):
    Q_id: Text
    aliases: tuple[String, ...]
    demonyms: tuple[String, ...] = ()


def _aliases(path: Path) -> tuple[Aliases, str]:
    """Aliases and demonyms by answer id, from 2WikiMultiHopQA's `id_aliases.json`, and the file's SHA-256.

    Raises `DataFileError`, which names file, row and field.
    """
    raw = read_json_rows(path)
    aliases: dict[str, tuple[str, ...]] = {}
    for number, value in raw.rows:
        try:
            row = _AliasRow.model_validate(value)
        except RowError as error:
            raise DataFileError(f"{raw.source}: row {number}, {first_fault(error)}.") from None
        aliases[row.Q_id] = (*row.aliases, *row.demonyms)
    return aliases, raw.sha256


def _likeness(row: object, dataset: Dataset) -> tuple[int, float]:
    shared = len(dataset.example.keys() & row.keys()) if isinstance(row, dict) else 0
    return shared, shared / max(len(dataset.example), 1)


def _raw(dataset: Dataset, data_file: Path | None, most: int | None, access: HubAccess | None) -> RawRows:
    if data_file is None and dataset.packaged is not None:
        data_file = shipped(dataset.packaged)
    if data_file is not None:
        with calling("data set", dataset.name, dataset.read_rows):
            rows = dataset.read_rows(data_file)
            require_result(rows, RawRows)
            return rows
    if dataset.hub is None:
        raise InputError(f"The data set {dataset.name!r} is read from a file; pass it with --data-file.")
    return read_hub_rows(dataset.hub, most=most, access=access)


@dataclass(kw_only=True)
class _RowReading:
    """Rows on their way to questions, and what is known of those already read."""

    raw: RawRows
    dataset_of: Callable[[object], Dataset]
    aliases: Aliases
    of: str = ""
    row_of: dict[str, int] = field(default_factory=dict)
    aliased: bool = False

    def questions(self) -> Iterator[Question]:
        """The questions one by one; raises `DataFileError` at the first row that is at fault, and if there is none."""
        for number, value in self.raw.rows:
            question = self._parsed(number, value)
            if question is None:
                continue
            if question.id in self.row_of:
                raise DataFileError(
                    f"{self.raw.source}: row {number}, field 'id': expected a unique id, "
                    f"but row {self.row_of[question.id]} also has {question.id!r}."
                )
            self.row_of[question.id] = number
            self.aliased = self.aliased or bool(question.aliases)
            yield question
        if not self.row_of:
            raise DataFileError(f"{self.raw.source} contains no answerable question{self.of}.")

    def _parsed(self, number: int, value: object) -> Question | None:
        dataset = self.dataset_of(value)
        with calling("data set", dataset.name, dataset.parse):
            try:
                question = dataset.parse(value, self.aliases)
            except RowError as error:
                raise DataFileError(f"{self.raw.source}: row {number}, {first_fault(error)}.") from None
            require_result(question, Question, or_none=True)
        return question
