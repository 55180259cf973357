"""The lines of a record file: one JSON object each, with its kind as the only key.

| kind | what |
|---|---|
| `run` | format, experiment, settings without secrets, models, table, deficits, analyses; the first line |
| `question` | a question with its paragraphs |
| `passage` | a passage that a search found, once |
| `call` | a ledger row, the prompt and the reply, or the error that was raised |
| `retrieval` | queries and what they found, by passage id, or the error that was raised |
| `vectors` | a text's vector by a monitor's encoder, float32 in base64 |
| `row` | the answer of one row of the table to a question, with all rounds, unscored |
| `summary` | the SHA-256 of `summary.json`; the last line |
"""

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.datasets import Paragraph, Question
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.llm.pricing import Tariff
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.screening import Dropped
from meta_agent_rag.retrieval.vectors import FloatVector

from ..analyses.economy import newest_tariffs
from ..methods import Method, MethodTask
from ..metrics import SCORES
from ..rows.samples import QUESTION_FIELDS, asked, supported
from ..rows.scorers import Scorer
from ..run.arms import Arm

FORMAT = 2
Line: TypeAlias = Mapping[str, Any]
Quadrant: TypeAlias = tuple[bool, bool]
_DERIVED = (*QUESTION_FIELDS, "supporting_facts_gold", "support", "joint", *SCORES)


@dataclass(frozen=True, kw_only=True)
class Search:
    """The queries of a search, with its question and row of the table; equal searches find the same."""

    question_id: str
    method: str
    queries: tuple[str, ...]
    k: int
    exclude: tuple[str, ...]


def read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The lines of a record as (kind, content); raises `DataFileError` if the file is not a record."""
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        for line in content.split(b"\n"):
            if line.strip():
                entry = json.loads(line)
                if not isinstance(entry, dict) or len(entry) != 1:
                    raise ValueError("a line is not an object with one key")
                yield from entry.items()
    except FileNotFoundError:
        raise DataFileError(f"The record {str(path)!r} does not exist; check the path.") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataFileError(f"{path.name} is not a complete record of a run ({error}); record the run again.") from None


def as_line(line: Line) -> bytes:
    """A line as written to the file."""
    return json.dumps(line, ensure_ascii=True, default=str).encode() + b"\n"


def last_line(summary_sha256: str) -> bytes:
    """The line that ends a record."""
    return as_line({"summary": {"sha256": summary_sha256}})


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write the whole record, or keep the old one; with `.gz` gzipped, and equal lines give equal bytes."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("wb") as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
                packed.writelines(lines)
        else:
            file.writelines(lines)
    unfinished.replace(path)


def question_line(question: Question) -> Line:
    """A question as a line."""
    paragraphs = [
        {**asdict(paragraph), "supporting_sentences": sorted(paragraph.supporting_sentences)}
        for paragraph in question.paragraphs
    ]
    return {"question": {**asdict(question), "paragraphs": paragraphs}}


def question_from(content: Mapping[str, Any]) -> Question:
    """A question from its line."""
    paragraphs = tuple(
        Paragraph(
            title=paragraph["title"],
            sentences=tuple(paragraph["sentences"]),
            is_supporting=paragraph["is_supporting"],
            supporting_sentences=frozenset(paragraph["supporting_sentences"]),
        )
        for paragraph in content["paragraphs"]
    )
    facts = tuple((title, index) for title, index in content["supporting_facts"])
    given = {**content, "aliases": tuple(content["aliases"]), "paragraphs": paragraphs, "supporting_facts": facts}
    given["facts"] = tuple(tuple(fact) for fact in content.get("facts", ()))
    return Question(**given)


def retrieval_content(retrieval: Retrieval) -> dict[str, Any]:
    """A retrieval as a line, by passage ids."""
    found = [
        {**{name: value for name, value in vars(one).items() if name != "passage"}, "id": one.passage.id}
        for one in retrieval.found
    ]
    return {
        "found": found,
        "dropped": [asdict(dropped) for dropped in retrieval.dropped],
        "pool_ids": list(retrieval.pool_ids),
    }


def retrieval_from(content: Mapping[str, Any], passages: Mapping[str, Passage]) -> Retrieval:
    """A retrieval from its line."""
    found = tuple(
        Found(passage=passages[one["id"]], **{**without(one, "id"), "suspect": tuple(one["suspect"])})
        for one in content["found"]
    )
    dropped = tuple(Dropped(**{**one, "kinds": tuple(one.get("kinds", ()))}) for one in content["dropped"])
    return Retrieval(found=found, dropped=dropped, pool_ids=tuple(content["pool_ids"]))


def vector_text(vector: FloatVector) -> str:
    """A vector as base64 of little-endian float32."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def vector_from(text: str) -> FloatVector:
    """A vector from its base64."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)


def row_content(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `samples.jsonl` for a record, without scores and the question's own fields."""
    kept = without(row, *_DERIVED)
    return {**kept, "rounds": [without(round_, "em", "f1") for round_ in row["rounds"]]}


def scored(content: Mapping[str, Any], question: Question, *, quotes: bool, scorer: Scorer) -> dict[str, Any]:
    """The restored row of `samples.jsonl`, scored now; `quotes` says that the method's supporting facts are scored.

    Other measurements on the passages (`evidence_recall`, `answer_recall`) are as recorded.
    """
    head = {**asked(question, content["method"]), "prediction": content["prediction"]}
    facts = {"supporting_facts_gold": [list(fact) for fact in question.supporting_facts]}
    if content["error"] is not None:
        return {**head, **dict.fromkeys(SCORES), **content, **facts, "support": None, "joint": None}
    score = scorer(content["prediction"], question.golds)
    quoted = [(title, index) for title, index in content["supporting_facts"]] if quotes else None
    drafts = [scorer(round_["draft"]["short_answer"], question.golds) for round_ in content["rounds"]]
    rounds = [{**round_, "em": own.em, "f1": own.f1} for round_, own in zip(content["rounds"], drafts, strict=True)]
    support = supported(question.supporting_facts, score, quoted)
    return {**head, **asdict(score), **content, "rounds": rounds, **facts, **support}


def without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The content without some of its fields."""
    return {name: value for name, value in content.items() if name not in names}


def table_content(
    arms: Sequence[Arm], *, quadrants: Mapping[str, Quadrant | None], analyses: Sequence[str]
) -> dict[str, Any]:
    """The table's part of a record's first line, by name, so that a replay does not depend on the current code.

    `quadrants` are those of the deficits. The newest prices of each tier are recorded too: the analyses use them.
    """
    rows = [
        {
            "method": arm.method.name,
            "quotes": arm.method.quotes,
            "loop": arm.method.loop,
            "assignments": list(arm.assignments),
            "without_deficits": list(arm.without_deficits),
            "oracles": list(arm.oracles),
            "equal": arm.equal,
            "repeat": arm.repeat,
        }
        for arm in arms
    ]
    prices = {tier: tariff.model_dump(mode="json", by_alias=True) for tier, tariff in newest_tariffs().items()}
    return {"arms": rows, "quadrants": dict(quadrants), "analyses": list(analyses), "tariffs": prices}


def arms_from(run: Mapping[str, Any]) -> tuple[Arm, ...]:
    """The rows of the table, even if their methods or settings no longer exist; damage raises its own errors."""
    return tuple(
        Arm(
            method=Method(
                name=content["method"],
                citation="",
                about="",
                departures="",
                answer=_recorded_answer,
                quotes=content["quotes"],
                loop=content["loop"],
            ),
            assignments=tuple(content["assignments"]),
            without_deficits=tuple(content["without_deficits"]),
            oracles=tuple(content["oracles"]),
            equal=content.get("equal", ""),
            repeat=content["repeat"],
        )
        for content in run["arms"]
    )


def quadrants_from(run: Mapping[str, Any]) -> dict[str, Quadrant | None]:
    """The quadrants of the deficits when the record was made, by name."""
    return {name: None if found is None else (found[0], found[1]) for name, found in run["quadrants"].items()}


def tariffs_from(run: Mapping[str, Any]) -> dict[str, Tariff]:
    """The prices of each tier when the record was made."""
    return {tier: Tariff.model_validate(content) for tier, content in run["tariffs"].items()}


async def _recorded_answer(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} to {task.id!r} is recorded; a replay makes no call.")
