"""The lines of a record file: one JSON object each, with its kind as the only key.

| kind | what |
|---|---|
| `run` | format, experiment, settings without secrets, models, table, deficits, analyses; the first line |
| `question` | a question with its paragraphs |
| `passage` | a passage that a search found, once |
| `call` | a ledger row, the prompt and the reply, or the error that was raised |
| `retrieval` | queries and what they found, by passage id, or the error that was raised |
| `vectors` | a text's vector by a monitor's encoder, float32 in base64; older records do not name the encoder |
| `row` | the answer of one row of the table to a question, with all rounds, unscored |
| `summary` | the SHA-256 of `summary.json`; the last line |
"""

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from meta_agent_rag.datasets import Paragraph, Question
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage, from_fields
from meta_agent_rag.retrieval.screening import Dropped
from meta_agent_rag.retrieval.vectors import FloatVector

from .rows import without

FORMAT = 2
WITHOUT_ROWS = 1
"""The previous format: `answer` lines with only the seconds, instead of `row` lines."""
Line = Mapping[str, Any]


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


def passage_from(content: Mapping[str, Any]) -> Passage:
    """A passage from its line."""
    return from_fields(content)


def vector_text(vector: FloatVector) -> str:
    """A vector as base64 of little-endian float32."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def vector_from(text: str) -> FloatVector:
    """A vector from its base64."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)
