"""The package's named protocols, and the protocol that a run reports."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.report import protocol
from benchmarks.run.config import MODES, RunConfig
from benchmarks.run.protocols import RunProtocol, protocol_named, protocol_names
from meta_agent_rag.datasets import discover
from meta_agent_rag.errors import UnknownNameError
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


@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa", "musique"])
@pytest.mark.parametrize("mode", ["gold", "open_domain"])
def test_every_data_set_has_a_protocol_of_500_questions(dataset: str, mode: str) -> None:
    found = protocol_named(f"{dataset}_{mode}_500")
    assert (found.dataset, found.mode, found.n, found.seed, found.aliases) == (dataset, mode, 500, 42, False)


def test_every_protocol_is_runnable() -> None:
    assert len(set(protocol_names())) == len(protocol_names()) >= 6
    for name in protocol_names():
        found = protocol_named(name)
        assert found.mode in MODES
        assert found.dataset in discover()
        assert discover()[found.dataset].takes_aliases or not found.aliases


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'hotpot'; choose from: .*hotpotqa_gold_500"):
        protocol_named("hotpot")


def test_a_protocol_has_either_a_sample_or_a_range() -> None:
    assert RunProtocol(dataset="hotpotqa", mode="gold", limit="1-10").n is None
    with pytest.raises(ValueError, match="either n or limit"):
        RunProtocol(dataset="hotpotqa", mode="gold")


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
