"""A prediction file, read by its schema and matched to the questions of a data set."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from meta_agent_rag.datasets import Question
from meta_agent_rag.datasets.rows import read_json_rows
from meta_agent_rag.discovery import named
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.wording import first_fault

from .schemas import Prediction, Schema, discover_schemas


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A system's predictions by the ids of our questions, and the number for unknown questions."""

    name: str
    file: str
    sha256: str
    schema: str
    predictions: Mapping[str, Prediction]
    unknown: int


def imported(path: Path, questions: Sequence[Question], *, name: str, schema: str | None = None) -> Imported:
    """Read a prediction file by the named schema, or the one that it fits, and match it to questions.

    Raises `UnknownNameError` for an unknown schema, and `DataFileError` for a file that cannot be read, fits
    no schema, answers a question twice, or answers none of the questions.
    """
    value = _value(path)
    used, rows = _fitting(path, value, schema)
    predictions = [_parsed(path, used, number, row) for number, row in enumerate(rows, start=1)]
    by_id, unknown = _matched(path, predictions, questions)
    return Imported(
        name=name,
        file=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        schema=used.name,
        predictions=by_id,
        unknown=unknown,
    )


def _value(path: Path) -> object:
    try:
        whole = json.loads(path.read_bytes())
        return [whole] if isinstance(whole, dict) and "prediction" in whole else whole  # JSON Lines of one row
    except (OSError, ValueError, RecursionError):
        return [row for _, row in read_json_rows(path).rows]  # JSON Lines, gzipped, or unreadable, which is reported


def _fitting(path: Path, value: object, wanted: str | None) -> tuple[Schema, Sequence[object]]:
    known = discover_schemas()
    for schema in known.values() if wanted is None else (named("schema of predictions", wanted, known),):
        rows = schema.rows(value)
        if rows is not None:
            return schema, rows
    if wanted is not None:
        raise DataFileError(
            f"{path.name} does not fit the schema {wanted!r} ({known[wanted].about}); leave --schema out."
        )
    tried = "; ".join(f"{one.name} ({one.about})" for one in known.values())
    raise DataFileError(f"{path.name} fits none of the known schemas of predictions: {tried}.")


def _parsed(path: Path, schema: Schema, number: int, row: object) -> Prediction:
    try:
        return schema.row.model_validate(row).prediction()
    except ValidationError as error:
        raise DataFileError(f"{path.name}: row {number}, read as {schema.name!r}, {first_fault(error)}.") from None


def _matched(
    path: Path, predictions: Sequence[Prediction], questions: Sequence[Question]
) -> tuple[dict[str, Prediction], int]:
    """Match by text if it is given and unique, since ids differ between copies of a data set; otherwise by id."""
    times = Counter(_key(question.text) for question in questions)
    by_text = {_key(one.text): one.id for one in questions if times[_key(one.text)] == 1}
    ids = {question.id for question in questions}
    found: dict[str, Prediction] = {}
    unknown = 0
    for number, prediction in enumerate(predictions, start=1):
        if prediction.id is None and prediction.question is None:
            raise DataFileError(f"{path.name}: row {number} has neither 'id' nor 'question'; give one of them.")
        id_ = None if prediction.question is None else by_text.get(_key(prediction.question))
        if id_ is None and prediction.id in ids and _may_be_by_id(prediction, times):
            id_ = prediction.id
        if id_ is None:
            unknown += 1
        elif id_ in found:
            raise DataFileError(f"{path.name}: row {number} answers {id_!r} a second time; give one system's rows.")
        else:
            found[id_] = prediction
    if not found:
        raise DataFileError(
            f"{path.name} answers none of these {len(questions)} questions; check --dataset and --data-file."
        )
    return found, unknown


def _may_be_by_id(prediction: Prediction, times: Mapping[str, int]) -> bool:
    """A question whose text differs from all of ours is a different question, whatever its id."""
    return prediction.question is None or times[_key(prediction.question)] > 1


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
