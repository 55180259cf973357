"""Latencies are not misleading after a resume or for the first question."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run import execution
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import EncoderChoice
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.testing.server import disagreeing, loopback_server
from tests.integration.test_runner import environment, in_process, lines, only_run

START_S = 1.5


def latency(folder: Path, method: str = "metarag") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())["methods"][method]["latency_s"]
    return found


class SlowToStart(HashEncoder):
    """An encoder that loads its weights on the first text."""

    loaded = False

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        return self._loaded().encode_passages(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        return HashEncoder.encode_passages(self._loaded(), texts)

    def _loaded(self) -> "SlowToStart":
        if not type(self).loaded:
            time.sleep(START_S)
            type(self).loaded = True
        return self


@pytest.mark.slow
def test_the_first_question_does_not_wait_for_the_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "load_encoder", lambda *_: EncoderChoice(encoder=SlowToStart()))
    monkeypatch.setattr(SlowToStart, "loaded", False)
    with loopback_server(disagreeing(0.01)) as server:
        env = environment(server.base_url, tmp_path / "data")
        assert in_process(["--n", "3", "--concurrency", "1"], env).exit_code == 0
    assert SlowToStart.loaded
    assert max(row["latency_s"] for row in lines(only_run(tmp_path) / "samples.jsonl")) < START_S


def test_zero_cost_is_shown_as_free_in_every_table(tmp_path: Path) -> None:
    record = Path(__file__).parents[2] / "benchmarks" / "recorded" / "sample.jsonl.gz"
    done = in_process(["--replay", str(record), "--output-dir", "RESULTS"], {"MARAG_DATA_DIR": str(tmp_path / "d")})
    assert done.exit_code == 0, done.output
    folder = only_run(tmp_path)
    for name in ("quality", "cost"):
        head, *rows = (folder / "tables" / f"{name}.csv").read_text().splitlines()
        place = head.split(",").index("USD")
        assert {row.rsplit(",", len(head.split(",")) - place)[1] for row in rows} == {"free"}, name
