"""A file of another system's predictions, matched to the questions of a data set and scored as rows of a run.

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
from typing import Any, Final

from pydantic import BaseModel, Field, ValidationError

from meta_agent_rag.datasets import Question
from meta_agent_rag.datasets.rows import read_json_rows
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.wording import first_fault

from .metrics import SCORES, score_answer
from .rows.samples import asked

MODE: Final = "imported"


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
    """A system's answers as rows of `samples.jsonl`, and the number of predictions for unknown questions."""

    name: str
    sha256: str
    rows: tuple[dict[str, Any], ...]
    unknown: int


def imported(path: Path, questions: Sequence[Question], *, name: str) -> Imported:
    """Read a file of predictions, match it to questions, and score it.

    A prediction is matched by its text if it has one that is unique, since ids differ between copies of a data set;
    otherwise by id. Raises `DataFileError` for a file that cannot be read, answers a question twice, or answers none.
    """
    times = Counter(_key(question.text) for question in questions)
    by_text = {key: one.id for one in questions if times[key := _key(one.text)] == 1}
    ids = {question.id for question in questions}
    found: dict[str, Prediction] = {}
    unknown = 0
    for number, content in enumerate(_entries(path), start=1):
        one = _parsed(path, number, content)
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
    rows = tuple(_row(question, found[question.id], name, path) for question in questions if question.id in found)
    return Imported(name=name, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), rows=rows, unknown=unknown)


def _row(question: Question, prediction: Prediction, name: str, path: Path) -> dict[str, Any]:
    """A row of `samples.jsonl`: what the file does not state is null, never a guess."""
    row = {
        **asked(question, name),
        "prediction": prediction.text,
        "rounds": [],
        "notes": [],
        "support": None,
        "joint": None,
        "latency_s": prediction.seconds or 0.0,
        "timed": prediction.seconds is not None,
        "llm_calls": prediction.calls,
        "cached_calls": 0,
        "tokens": {"prompt": prediction.prompt_tokens, "cache_hit": 0, "completion": prediction.completion_tokens},
        "cost_usd": None,
        "paid_usd": None,
    }
    if prediction.text is None:
        return {**row, **dict.fromkeys(SCORES), "error": f"ImportedError: {path.name} contains no answer"}
    answered = {"answer": prediction.text, "stop_reason": MODE, "fired": False, "chosen": 0, "suspect": []}
    return {**row, **vars(score_answer(prediction.text, question.golds)), **answered, "error": None}


def _entries(path: Path) -> Sequence[object]:
    """The entries of a file of any known form, as objects with an answer."""
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


def _parsed(path: Path, number: int, content: object) -> Prediction:
    if not isinstance(content, dict) or not (said := _answers(content)):
        raise DataFileError(f"{path.name}: row {number} has no answer; give null for a question that failed.")
    try:
        found = Prediction.model_validate({**content, "prediction": said[0]})
    except ValidationError as error:
        raise DataFileError(f"{path.name}: row {number}: {first_fault(error)}.") from None
    if found.id is None and found.question is None:
        raise DataFileError(f"{path.name}: row {number} has neither 'id' nor 'question'; give one of them.")
    return found


def _answers(content: object) -> Sequence[object]:
    """The answer of an entry; empty if it has none. `answer` alone, or beside an `output`, is the gold answer."""
    if not isinstance(content, Mapping):
        return ()
    if known := [content[name] for name in ("prediction", "pred") if name in content]:
        return known
    if "output" in content:
        return (content["output"].get("pred") if isinstance(content["output"], dict) else None,)
    return (content["answer"],) if {"answer", "gold_answers"} <= content.keys() else ()


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
