"""A control that spends as much as the loop on each question, in tokens."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.testing.server import Behaviour, LoopbackServer, ServerReply, disagreeing, loopback_server
from tests.integration.test_recording import replay, rows
from tests.integration.test_runner import environment, lines, only_run, succeeded

WORDS = ("--n", "4", "--method", "metarag,self_consistency", "--equal", "tokens")
TOKENS = "self_consistency equal tokens"


def billed_by_length(inner: Behaviour) -> Behaviour:
    """Replies billed by prompt and text length, so that no two questions cost the same."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        reply = inner(body)
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": len(reply.text) // 4, "prompt_cache_hit_tokens": 0}
        return ServerReply(text=reply.text, usage=usage)

    return behaviour


@pytest.fixture
def server() -> Any:
    with loopback_server(billed_by_length(disagreeing())) as running:
        yield running


def tokens(row: Mapping[str, Any]) -> int:
    return int(row["tokens"]["prompt"]) + int(row["tokens"]["completion"])


def require_equal(folder: Path) -> None:
    """Each row has the fewest chains that spend at least as much as the loop."""
    found = {(row["id"], row["method"]): row for row in lines(folder / "samples.jsonl")}
    ids = {id_ for id_, _ in found}
    assert len(ids) == 4
    for id_ in ids:
        loop, row = found[id_, "metarag"], found[id_, TOKENS]
        assert row["llm_calls"] >= 2
        assert tokens(row) >= tokens(loop)
        per_call = tokens(row) / row["llm_calls"]
        assert tokens(row) - per_call < tokens(loop) * 1.05, "one chain fewer would have spent less"


@pytest.mark.slow
def test_each_question_costs_what_the_loop_spent_on_it(server: LoopbackServer, tmp_path: Path) -> None:
    env = environment(server.base_url, tmp_path / "data")
    kept = tmp_path / "run.jsonl"
    succeeded([*WORDS, "--record", str(kept)], env)
    folder = only_run(tmp_path)
    require_equal(folder)
    summary = json.loads((folder / "summary.json").read_text())
    assert set(summary["methods"]) == {"metarag", "self_consistency", TOKENS}
    assert TOKENS in summary["comparison"]["against"], "paired with the loop"
    again = replay(kept, tmp_path)
    assert again.exit_code == 0, again.output
    (replayed,) = (tmp_path / "AGAIN").iterdir()
    assert rows(replayed) == rows(folder)
