"""The package's named protocols, and the protocol that a run reports."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.report import protocol
from benchmarks.run.config import RunConfig
from tests.loop import settings_in


def config(folder: Path, **fields: Any) -> RunConfig:
    given = {
        "dataset": "hotpotqa",
        "mode": "gold",
        "methods": ("metarag",),
        "n": 10,
        "limit": None,
        "seed": 7,
        "data_file": None,
        "aliases_file": None,
        "corpus": None,
        "concurrency": None,
        "settings": settings_in(folder),
    }
    return RunConfig(**{**given, **fields})


def test_the_protocol_of_a_run(tmp_path: Path) -> None:
    found = protocol(config(tmp_path), n=10, pooled=99)
    assert found.aspects() == {
        "data set": "hotpotqa",
        "split": "validation",
        "evidence": "the paragraphs supplied with each question, searched",
        "questions": "10",
        "sample": "10 drawn, seed 7",
        "scorer": "HotpotQA's official script",
        "aliases": None,
        "model": "deepseek-v4-flash and deepseek-v4-pro",
        "rounds": "5",
    }


@pytest.mark.parametrize(
    ("fields", "aspect", "words"),
    [
        ({"mode": "open_domain"}, "evidence", "pooled paragraphs of 99 questions"),
        ({"mode": "open_domain", "corpus": "mine"}, "evidence", "the corpus mine"),
        ({"mode": "supporting"}, "evidence", "the supporting paragraphs alone"),
        ({"n": None, "limit": "3-12"}, "sample", "rows 3-12"),
        ({"n": None, "sample_ids": ("a", "b")}, "sample", "10 named by id"),
        ({"data_file": Path("folder/dev.json")}, "split", "the file dev.json"),
        ({"dataset": "sample"}, "split", "the sample of this repository"),
        ({"dataset": "2wikimultihopqa"}, "aliases", "without"),
        ({"dataset": "2wikimultihopqa", "aliases_file": Path("a.json")}, "aliases", "with"),
        ({"dataset": "musique"}, "aliases", "with"),
    ],
)
def test_run_options_change_the_protocol(tmp_path: Path, fields: dict[str, Any], aspect: str, words: str) -> None:
    assert protocol(config(tmp_path, **fields), n=10, pooled=99).aspects()[aspect] == words
