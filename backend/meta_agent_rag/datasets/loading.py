"""The data sets of this folder, found by scanning it, and the way from a name to its questions."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError as RowError

from ..errors import DataFileError, DuplicateNameError, InputError, UnknownNameError
from ..shipped import shipped
from ..wording import first_fault
from .aliases import read_aliases
from .dataset import Dataset
from .hub import read_hub_rows
from .question import Question
from .rows import RawRows, read_json_rows


@dataclass(frozen=True, kw_only=True)
class LoadedQuestions:
    """All questions of a source, in its order, and what identifies the bytes they were read from."""

    questions: tuple[Question, ...]
    source: str
    sha256: str
    aliases_sha256: str | None = None


def discover(package: str = __package__) -> Mapping[str, Dataset]:
    """Import every module of the package and collect those that export `DATASET`, sorted by module name."""
    folder = importlib.import_module(package).__path__
    modules = (
        importlib.import_module(f"{package}.{name}") for name in sorted(m.name for m in pkgutil.iter_modules(folder))
    )
    return collect(module.DATASET for module in modules if isinstance(getattr(module, "DATASET", None), Dataset))


def collect(datasets: Iterable[Dataset]) -> Mapping[str, Dataset]:
    """Give the immutable registry by name; raises `DuplicateNameError`."""
    registry: dict[str, Dataset] = {}
    for dataset in datasets:
        if dataset.name in registry:
            raise DuplicateNameError(f"Two data sets are named {dataset.name!r}; rename one.")
        registry[dataset.name] = dataset
    return MappingProxyType(registry)


def load_questions(
    name: str,
    *,
    data_file: Path | None = None,
    aliases_file: Path | None = None,
    registry: Mapping[str, Dataset] | None = None,
    most: int | None = None,
) -> LoadedQuestions:
    """Read a data set from the file given, else from the package, else from the hub (at most `most` rows of it).

    Raises `UnknownNameError`, `InputError` for aliases where the data set takes none, and
    `DataFileError` with the file, the row from 1 and the field.
    """
    known = discover() if registry is None else registry
    if name not in known:
        raise UnknownNameError("data set", name, list(known))
    dataset = known[name]
    if aliases_file is not None and not dataset.takes_aliases:
        raise InputError(f"The data set {name!r} takes no file of aliases; leave --aliases out.")
    raw = _raw(dataset, data_file, most)
    aliases, aliases_sha256 = read_aliases(aliases_file) if aliases_file is not None else ({}, None)
    questions = _parsed(raw, lambda row: dataset.parse(row, aliases), of=f" of {name!r}")
    if aliases_file is not None and not any(question.aliases for question in questions):
        raise DataFileError(
            f"{aliases_file.name} has an alias for no answer of {raw.source}; "
            "the rows must carry the field 'answer_id', as the official file's do."
        )
    return LoadedQuestions(questions=questions, source=raw.source, sha256=raw.sha256, aliases_sha256=aliases_sha256)


def load_file(path: Path, *, registry: Mapping[str, Dataset] | None = None) -> LoadedQuestions:
    """Read a file whose data set is not named: each row goes to the data set whose example shares most fields with it.

    Raises `DataFileError` with the file, the row from 1 and the field.
    """
    known = tuple((discover() if registry is None else registry).values())
    raw = read_json_rows(path)
    questions = _parsed(raw, lambda row: max(known, key=partial(_likeness, row)).parse(row, {}))
    return LoadedQuestions(questions=questions, source=raw.source, sha256=raw.sha256)


def _likeness(row: object, dataset: Dataset) -> tuple[int, float]:
    shared = len(dataset.example.keys() & row.keys()) if isinstance(row, dict) else 0
    return shared, shared / max(len(dataset.example), 1)


def _raw(dataset: Dataset, data_file: Path | None, most: int | None) -> RawRows:
    if data_file is None and dataset.packaged is not None:
        data_file = shipped(dataset.packaged)
    if data_file is not None:
        return dataset.read_rows(data_file)
    if dataset.hub is None:
        raise InputError(f"The data set {dataset.name!r} is read from a file; name it with --data-file.")
    return read_hub_rows(dataset.hub, most=most)


def _parsed(raw: RawRows, parse: Callable[[object], Question | None], *, of: str = "") -> tuple[Question, ...]:
    questions: dict[str, Question] = {}
    row_of: dict[str, int] = {}
    for number, value in raw.rows:
        try:
            question = parse(value)
        except RowError as error:
            raise DataFileError(f"{raw.source}: row {number}, {first_fault(error)}.") from None
        if question is None:
            continue
        if question.id in row_of:
            raise DataFileError(
                f"{raw.source}: row {number}, field 'id': expected an id of its own, "
                f"but row {row_of[question.id]} has {question.id!r} too."
            )
        row_of[question.id] = number
        questions[question.id] = question
    if not questions:
        raise DataFileError(f"{raw.source} holds no question{of} that can be answered.")
    return tuple(questions.values())
