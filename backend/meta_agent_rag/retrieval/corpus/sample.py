"""The corpus `sample`, invented paragraphs that are there on every machine."""

import json
from collections.abc import Iterator
from typing import Any

from ...shipped import shipped
from ..passage import Passage, passage_id

SAMPLE = "sample"


def sample_passages() -> tuple[Passage, ...]:
    """All paragraphs of the sample questions, each once, in the order of the file."""
    unique = {passage.id: passage for passage in _passages()}
    return tuple(unique.values())


def sample_rows() -> list[dict[str, Any]]:
    """The sample questions, rows in HotpotQA's schema. Raises `CorpusError` where the file is not installed."""
    rows: list[dict[str, Any]] = json.loads(shipped("questions.json").read_text(encoding="utf-8"))
    return rows


def _passages() -> Iterator[Passage]:
    for row in sample_rows():
        for title, sentences in row["context"]:
            text = "".join(sentences)
            identity = passage_id(title, text)
            yield Passage(id=identity, doc_id=identity, title=title, text=text)
