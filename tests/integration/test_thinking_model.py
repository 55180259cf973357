"""A model that reasons for 6,000 tokens before each reply: it has room if configured, else the error says how."""

import json
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import StructuredOutputError
from meta_agent_rag.testing.server import Behaviour, ServerReply, always, disagreeing, loopback_server
from tests.integration.test_runner import environment, lines, only_run, succeeded
from tests.loopback import ASK, Answer, Serve, opened

HIDDEN = 6_000
METHODS = ("--method", "metarag,standard_rag,self_consistency,ircot", "--n", "3")


def thinking(inner: Behaviour, hidden: int = HIDDEN) -> Behaviour:
    """The same replies after `hidden` reasoning tokens, which count against the limit."""

    def behaviour(body: dict[str, Any]) -> ServerReply:
        reply = inner(body)
        limit = body.get("max_tokens") or body["max_completion_tokens"]
        room = limit - hidden
        words = reply.text.split(" ")
        text = "" if room <= 0 else " ".join(words[:room])
        spent = min(hidden, limit) + (len(words[:room]) if room > 0 else 0)
        details = {"reasoning_tokens": min(hidden, limit)}
        usage = {"prompt_tokens": 100, "completion_tokens": spent, "completion_tokens_details": details}
        cut = room < len(words)
        return ServerReply(text=text, usage=usage, finish_reason="length" if cut else "stop")

    return behaviour


@pytest.mark.slow
def test_a_configured_thinking_model_needs_one_call_each(tmp_path: Path) -> None:
    with loopback_server(thinking(disagreeing())) as server:
        env = {**environment(server.base_url, tmp_path / "data"), "FLASH_THINKING": "true"}
        succeeded([*METHODS], env)
        calls = lines(only_run(tmp_path) / "calls.jsonl")
        assert len(calls) == len(server.bodies)
    methods = json.loads((only_run(tmp_path) / "summary.json").read_text())["methods"]
    assert [found["errors"] for found in methods.values()] == [0, 0, 0, 0]
    assert all(found["tokens"]["reasoning"] == HIDDEN * found["llm_calls"] for found in methods.values())
    assert {call["attempt"] for call in calls} == {0}
    assert all(call["reasoning_tokens"] == HIDDEN and call["finish_reason"] == "stop" for call in calls)
    report = (only_run(tmp_path) / "report.md").read_text()
    assert "of which reasoning" in report
    assert "Replies cut" not in report


@pytest.mark.parametrize(
    ("values", "hidden", "said"),
    [
        ({"flash_thinking": True}, 50_000, "17084 of them for hidden reasoning; raise THINKING_TOKENS (now 16384)."),
        ({"flash_thinking": True, "thinking_tokens": 7_000}, 7_699, "raise THINKING_TOKENS (now 7000)."),
        ({}, 50_000, "set FLASH_THINKING=true."),
    ],
)
async def test_endless_thinking_reports_which_limit_to_raise(
    serve: Serve, values: dict[str, object], hidden: int, said: str
) -> None:
    server = serve(thinking(always(ServerReply(text='{"answer": "Goethe"}')), hidden))
    async with opened(server, **values) as model:
        with pytest.raises(StructuredOutputError) as caught:
            await model.session().ainvoke("write", ASK, Answer)
        assert str(caught.value).endswith(said)


async def test_reasoning_takes_at_most_half_the_window_and_evidence_shrinks(serve: Serve) -> None:
    server = serve(always(ServerReply(text="Goethe")))
    row = {"base_url": server.base_url, "model": "qwen", "thinking": True, "context": 8_192}
    roles = {"endpoints": {"small": row}, "roles": {"writer": "small"}}
    async with opened(server, model_roles=roles) as model:
        await model.session().areply("write", ASK)
        assert model.evidence_tokens() == 8_192 - 4_096 - 1_800
    assert server.bodies[0]["max_tokens"] == 700 + 4_096
