"""What comes with the package: the corpus `sample`, invented paragraphs that are there on every machine."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import CorpusError
from .passage import Passage, passage_id

SAMPLE = "sample"
_CHECKOUT = Path(__file__).parents[3]
_IN_CHECKOUT = {
    "questions.json": _CHECKOUT / "benchmarks" / "sample" / "questions.json",
    "run.zip": _CHECKOUT / "benchmarks" / "recorded" / "run.zip",
    "course": _CHECKOUT / "docs" / "examples" / "course",
}


def shipped(name: str) -> Path:
    """A file or folder that comes with the package. Raises `CorpusError` where it was not installed.

    A wheel carries them in its folder `sample`; in a checkout they lie where they are made.
    """
    packaged = Path(str(files("meta_agent_rag"))) / "sample" / name
    found = next((path for path in (packaged, _IN_CHECKOUT[name]) if path.exists()), None)
    if found is None:
        raise CorpusError(f"The sample's {name!r} is not installed; reinstall the package, or use data of your own.")
    return found


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
