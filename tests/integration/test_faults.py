"""A run against a server with every kind of injected fault."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.orchestration import answered, fresh_questions
from meta_agent_rag.testing.scripted import universal_reply
from meta_agent_rag.testing.server import Behaviour, ServerReply, loopback_server
from tests.faulty import Misbehaving, request_hash

_NUMBER = re.compile(r"\((\d+)\)")


async def measured(*, n: int, share: float, seed: int, concurrency: int, seconds: float) -> dict[str, Any]:
    """The figures of both runs."""
    undisturbed = Misbehaving(inner=_answering, share=0.0)
    disturbed = Misbehaving(inner=_answering, share=share, seed=seed)
    plain = await _answers(undisturbed, n, concurrency, seconds)
    troubled = await _answers(disturbed, n, concurrency, seconds)
    return {
        "questions": n,
        "answered": sum(answer is not None for answer in troubled.values()),
        "same": sum(troubled[id_] == answer for id_, answer in plain.items()),
        "calls_undisturbed": undisturbed.seen.total(),
        "calls": disturbed.seen.total(),
        "faults": dict(disturbed.struck),
    }


def _answering(body: dict[str, Any]) -> ServerReply:
    """Two routes that agree, and for every third question routes that all disagree, so that the loop repairs."""
    text = " ".join(message["content"] for message in body["messages"])
    number = int(_NUMBER.findall(text)[-1])
    said = f"answer {number}" if number % 3 else f"answer {request_hash(body)}"
    return ServerReply(text=json.dumps(universal_reply(said, deficit="reasoning_error")))


async def _answers(behaviour: Behaviour, n: int, concurrency: int, seconds: float) -> dict[str, str | None]:
    with loopback_server(behaviour) as server, tempfile.TemporaryDirectory() as folder:
        outcome = await answered(
            server.base_url,
            fresh_questions(n),
            Path(folder),
            concurrency=concurrency,
            llm_timeout_seconds=seconds,
            response_cache=False,
        )
    return {row["id"]: row["prediction"] if row["error"] is None else None for row in outcome.rows}


@pytest.mark.slow
async def test_failing_calls_are_retried_and_lose_no_answer() -> None:
    result = await measured(n=24, share=0.3, seed=1, concurrency=8, seconds=5.0)
    assert len(result["faults"]) >= 12
    assert result["answered"] == result["same"] == 24
    assert result["calls"] <= 1.5 * result["calls_undisturbed"]
