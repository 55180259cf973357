"""Finds the data sets by scanning folders, and loads questions by the name of a data set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError as RowError

from ..discovery import by_name, calling, contributed, named, require_result
from ..errors import DataFileError, InputError
from ..shipped import shipped
from ..wording import first_fault
from .dataset import Aliases, Dataset
from .hub import HubAccess, read_hub_rows
from .question import Question
from .reading.aliases import read_aliases
from .reading.rows import RawRows, read_json_rows

ENTRY_POINT_GROUP = "meta_agent_rag.datasets"


@dataclass(frozen=True, kw_only=True)
class LoadedQuestions:
    """All questions of a source, in order, and the identity of the data they were read from.

    `revision` is the commit on the hub, if known.
    """

    questions: tuple[Question, ...]
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
) -> LoadedQuestions:
    """Read a data set from the given file, else from the package, else from the hub (at most `most` rows).

    `access` holds the token and the revision for the hub.

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
    aliases, aliases_sha256 = read_aliases(aliases_file) if aliases_file is not None else ({}, None)
    questions = _parsed(raw, lambda row: dataset, aliases, of=f" of {name!r}")
    if aliases_file is not None and not any(question.aliases for question in questions):
        raise DataFileError(
            f"{aliases_file.name} has no alias for any answer of {raw.source}; "
            "the rows must contain the field 'answer_id', as in the official file."
        )
    return LoadedQuestions(
        questions=questions,
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
    questions = _parsed(raw, lambda row: max(known, key=partial(_likeness, row)), {})
    return LoadedQuestions(questions=questions, source=raw.source, sha256=raw.sha256)


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


def _parsed(
    raw: RawRows, dataset_of: Callable[[object], Dataset], aliases: Aliases, *, of: str = ""
) -> tuple[Question, ...]:
    questions: dict[str, Question] = {}
    row_of: dict[str, int] = {}
    for number, value in raw.rows:
        dataset = dataset_of(value)
        with calling("data set", dataset.name, dataset.parse):
            try:
                question = dataset.parse(value, aliases)
            except RowError as error:
                raise DataFileError(f"{raw.source}: row {number}, {first_fault(error)}.") from None
            require_result(question, Question, or_none=True)
        if question is None:
            continue
        if question.id in row_of:
            raise DataFileError(
                f"{raw.source}: row {number}, field 'id': expected a unique id, "
                f"but row {row_of[question.id]} also has {question.id!r}."
            )
        row_of[question.id] = number
        questions[question.id] = question
    if not questions:
        raise DataFileError(f"{raw.source} contains no answerable question{of}.")
    return tuple(questions.values())
