"""A file of another system's predictions, matched to the questions of a data set.

Read are FlashRAG's `intermediate_data.json` (`output.pred`), MOTHRAG's `paper/results/*.json` (`per_question`, each
with `pred` and its cost), a list of HippoRAG's `QuerySolution.to_dict()` (`answer`), HotpotQA's official
`{"answer": {id: text}}`, `{id: answer}`, and a list, or lines, of `{"id" or "question", "prediction"}`.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from meta_agent_rag.datasets import Question
from meta_agent_rag.datasets.rows import read_json_rows
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.wording import first_fault


class Prediction(BaseModel, frozen=True, strict=True, extra="ignore"):
    """An answer to a question, which is identified by id, text, or both; `text` is `None` if it failed."""

    id: str | int | None = None
    question: str | None = None
    text: str | None = Field(alias="prediction")
    calls: int = Field(alias="n_llm_calls", default=0)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float | None = Field(alias="latency_s", default=None)


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A system's predictions by the ids of our questions, and the number for unknown questions."""

    name: str
    file: str
    sha256: str
    predictions: Mapping[str, Prediction]
    unknown: int


def imported(path: Path, questions: Sequence[Question], *, name: str) -> Imported:
    """Read a file of predictions and match it to questions.

    A row is matched by its text if it has one that is unique, since ids differ between copies of a data set; otherwise
    by id. Raises `DataFileError` for a file that cannot be read, answers a question twice, or answers none.
    """
    times = Counter(_key(question.text) for question in questions)
    by_text = {key: one.id for one in questions if times[key := _key(one.text)] == 1}
    ids = {question.id for question in questions}
    found: dict[str, Prediction] = {}
    unknown = 0
    for number, row in enumerate(_rows(path), start=1):
        one = _parsed(path, number, row)
        text = None if one.question is None else _key(one.question)
        id_ = None if text is None else by_text.get(text)
        if id_ is None and str(one.id) in ids and (text is None or times[text] > 1):  # another text, another question
            id_ = str(one.id)
        if id_ is None:
            unknown += 1
        elif id_ in found:
            raise DataFileError(f"{path.name}: row {number} answers {id_!r} a second time; give one system's rows.")
        else:
            found[id_] = one
    if not found:
        raise DataFileError(
            f"{path.name} answers none of these {len(questions)} questions; check --dataset and --data-file."
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Imported(name=name, file=path.name, sha256=digest, predictions=found, unknown=unknown)


def _rows(path: Path) -> Sequence[object]:
    """The rows of a file of any known form, as objects with an answer."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        value = [row for _, row in read_json_rows(path).rows]  # JSON Lines, gzipped, or unreadable, which is reported
    if isinstance(value, dict) and "prediction" in value:
        return [value]
    if isinstance(value, dict):
        rows = value.get("per_question", value.get("answer", value))
        value = [{"id": id_, "prediction": text} for id_, text in rows.items()] if isinstance(rows, dict) else rows
    if not isinstance(value, list) or not value or not _answers(value[0]):
        raise DataFileError(
            f"{path.name} is no known file of predictions; give FlashRAG's, MOTHRAG's or HippoRAG's, HotpotQA's "
            'official {"answer": {id: text}}, {id: answer}, or rows of {"id" or "question", "prediction"}.'
        )
    return value


def _parsed(path: Path, number: int, row: object) -> Prediction:
    if not isinstance(row, dict) or not (said := _answers(row)):
        raise DataFileError(f"{path.name}: row {number} has no answer; give null for a question that failed.")
    try:
        found = Prediction.model_validate({**row, "prediction": said[0]})
    except ValidationError as error:
        raise DataFileError(f"{path.name}: row {number}: {first_fault(error)}.") from None
    if found.id is None and found.question is None:
        raise DataFileError(f"{path.name}: row {number} has neither 'id' nor 'question'; give one of them.")
    return found


def _answers(row: object) -> tuple[object, ...]:
    """The answer of a row; empty if it has none. `answer` alone, or beside an `output`, is the gold answer."""
    if not isinstance(row, dict):
        return ()
    if known := [row[name] for name in ("prediction", "pred") if name in row]:
        return (known[0],)
    if "output" in row:
        return (row["output"].get("pred") if isinstance(row["output"], dict) else None,)
    return (row["answer"],) if {"answer", "gold_answers"} <= row.keys() else ()


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
