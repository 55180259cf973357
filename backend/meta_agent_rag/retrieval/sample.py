"""The corpus `sample`: the invented paragraphs of the sample data set, there on every machine."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from .passage import Passage, passage_id

SAMPLE = "sample"
_CHECKOUT = Path(__file__).parents[3] / "benchmarks" / "sample" / "questions.json"


def sample_passages() -> tuple[Passage, ...]:
    """All paragraphs of the sample questions, each once, in the order of the file."""
    unique = {passage.id: passage for passage in _passages()}
    return tuple(unique.values())


def sample_rows() -> list[dict[str, Any]]:
    """The sample questions, rows in HotpotQA's schema. Raises `CorpusError` where the file is not installed."""
    rows: list[dict[str, Any]] = json.loads(_source())
    return rows


def _passages() -> Iterator[Passage]:
    for row in sample_rows():
        for title, sentences in row["context"]:
            text = "".join(sentences)
            identity = passage_id(title, text)
            yield Passage(id=identity, doc_id=identity, title=title, text=text)


def _source() -> str:
    packaged = files("meta_agent_rag").joinpath("sample", "questions.json")
    if packaged.is_file():  # a wheel carries the file; a checkout has it beside the benchmark
        return packaged.read_text(encoding="utf-8")
    if _CHECKOUT.is_file():
        return _CHECKOUT.read_text(encoding="utf-8")
    raise CorpusError("The sample data set is not installed; reinstall the package, or name a corpus of your own.")
