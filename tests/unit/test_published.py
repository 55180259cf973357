"""Published figures as printed, and how a run states its own protocol."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.report.published import protocol, published
from benchmarks.run.config import RunConfig
from meta_agent_rag.datasets import discover
from tests.loop import settings_in


@pytest.mark.parametrize(
    ("name", "dataset", "figures"),
    [
        ("MetaRAG", "hotpotqa", ("37.8", "49.9", "52.1", "50.9", "-")),
        ("MetaRAG", "2wikimultihopqa", ("42.8", "50.8", "50.7", "52.2", "-")),
        ("HippoRAG 2", "musique", ("37.2", "48.6", "-", "-", "-")),
        ("NeocorRAG", "hotpotqa", ("-", "78.3", "-", "-", "-")),
        ("A-RAG", "musique", ("-", "-", "-", "-", "74.1")),
    ],
)
def test_figures_match_the_publications(name: str, dataset: str, figures: tuple[str, ...]) -> None:
    (row,) = (row for row in published(dataset).rows if row[0] == name)
    assert row[1:6] == figures


def test_every_row_has_its_protocol_and_source() -> None:
    rows = [row for name in discover() for row in published(name).rows]
    assert len(rows) == 40
    assert all(row[6] and row[7] for row in rows)


@pytest.mark.parametrize(
    ("fields", "aspect", "words"),
    [
        ({}, "evidence", "the paragraphs supplied with each question, searched"),
        ({}, "sample", "10 drawn, seed 7"),
        ({"mode": "open_domain", "corpus": "mine"}, "evidence", "the corpus mine"),
        ({"mode": "supporting"}, "evidence", "the supporting paragraphs alone"),
        ({"data_file": Path("folder/dev.json")}, "split", "the file dev.json"),
        ({"dataset": "2wikimultihopqa", "aliases_file": Path("a.json")}, "aliases", "with"),
    ],
)
def test_a_run_states_its_protocol(tmp_path: Path, fields: dict[str, Any], aspect: str, words: str) -> None:
    given = {"dataset": "hotpotqa", "mode": "gold", "n": 10, "seed": 7, "settings": settings_in(tmp_path)}
    assert protocol(RunConfig(**{**given, **fields}), n=10, pooled=99)[aspect] == words
