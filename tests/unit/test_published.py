"""Published figures: the tables as printed, their sources, and how their protocols differ from a run's."""

from dataclasses import replace

import pytest

from benchmarks.report.published import PublishedRow, other_protocols, published_rows
from benchmarks.run.protocols import SCORER, Protocol, differences
from meta_agent_rag.datasets import discover

OURS = Protocol(
    dataset="hotpotqa",
    split="validation",
    evidence="supplied_context",
    model="deepseek-v4-flash",
    n=500,
    sample="500 drawn",
    seed=42,
    scorer=SCORER,
    rounds=5,
)
METARAG_TABLE = ["Standard RAG", "ReAct", "Flare", "IR-CoT", "Self-Ask", "Reflexion", "MetaRAG"]


def row(name: str, dataset: str = "hotpotqa") -> PublishedRow:
    (found,) = (row for row in published_rows(dataset) if row.name == name)
    return found


@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa"])
def test_the_whole_table_of_the_paper_is_included(dataset: str) -> None:
    rows = [row for row in published_rows(dataset) if "Table 1" in row.source]
    assert [row.name for row in rows] == METARAG_TABLE
    assert all(row.precision is not None and row.recall is not None for row in rows)
    found = {(row.protocol.evidence, row.protocol.model, row.protocol.n, row.protocol.aliases) for row in rows}
    assert found == {("open_domain_wikipedia", "gpt-35-turbo-16k", 500, dataset == "2wikimultihopqa")}


@pytest.mark.parametrize(
    ("name", "dataset", "figures"),
    [
        ("MetaRAG", "hotpotqa", (37.8, 49.9, 52.1, 50.9)),
        ("MetaRAG", "2wikimultihopqa", (42.8, 50.8, 50.7, 52.2)),
        ("Self-Ask", "2wikimultihopqa", (28.6, 37.5, 36.5, 42.8)),
        ("Meta-Agent-RAG (earlier report)", "hotpotqa", (49.8, 62.7, 66.8, 62.4)),
        ("HippoRAG 2", "musique", (37.2, 48.6, None, None)),
        ("KAG", "2wikimultihopqa", (67.8, 76.2, None, None)),
        ("PIKE-RAG", "musique", (41.5, 51.6, None, None)),
        ("MOTHRAG", "2wikimultihopqa", (68.2, 76.3, None, None)),
        ("NeocorRAG", "hotpotqa", (None, 78.3, None, None)),
        ("CoRAG", "musique", (None, 52.9, None, None)),
        ("A-RAG", "hotpotqa", (None, None, None, None)),
    ],
)
def test_figures_match_the_publications(name: str, dataset: str, figures: tuple[float | None, ...]) -> None:
    found = row(name, dataset)
    assert (found.em, found.f1, found.precision, found.recall) == figures


def test_every_row_has_a_source_and_a_plausible_f1() -> None:
    rows = [row for name in discover() for row in published_rows(name)]
    assert len(rows) == 40
    assert all(row.source for row in rows)
    assert all(row.em < row.f1 for row in rows if row.em is not None and row.f1 is not None)
    assert all((row.f1 is None) == (row.judged is not None) for row in rows)
    assert len({(row.name, row.protocol.dataset) for row in rows}) == len(rows)


def test_judged_figures_are_kept_apart_from_exact_metrics() -> None:
    found = row("A-RAG", "musique")
    assert found.judged == 74.1
    judged = Protocol(dataset="musique", scorer=SCORER, model="GPT-5-mini")
    assert differences(found.protocol, judged) == [f"scorer: a language model's judgement, ours {SCORER}"]
    tables = other_protocols(replace(OURS, dataset="musique"))
    (theirs,) = (table for table in tables if any(cells[0] == "A-RAG" for cells in table.rows))
    assert theirs.head[-1] == "judged"
    assert ("A-RAG", "-", "-", "-", "-", "74.1") in theirs.rows
    assert all("judged" not in table.head for table in tables if table is not theirs)


def test_an_open_domain_row_lists_its_differences() -> None:
    assert differences(row("MetaRAG").protocol, OURS) == [
        "evidence: passages retrieved from Wikipedia, ours the paragraphs supplied with each question",
        "sample: 500 questions, not listed, ours 500 drawn, seed 42",
        "model: gpt-35-turbo-16k, ours deepseek-v4-flash",
        "rounds: 2, ours 5",
        "not stated: scorer",
    ]
