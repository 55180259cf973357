"""A run against a server with every kind of injected fault."""

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speed.orchestration import answered, fresh_questions
from meta_agent_rag.testing.scripted import universal_reply
from meta_agent_rag.testing.server import Behaviour, ServerReply, loopback_server

Fault = Callable[[ServerReply, dict[str, Any]], ServerReply]
_NUMBER = re.compile(r"\((\d+)\)")
_HANG_SECONDS = 3600.0
_NEEDED = ("model", "messages", "max_tokens", "max_completion_tokens", "stream")


def _refusal(status: int, **headers: str) -> Fault:
    return lambda reply, body: ServerReply(status=status, headers=headers, usage=None)


def _unsupported(reply: ServerReply, body: dict[str, Any]) -> ServerReply:
    named = next((name for name in body if name not in _NEEDED), None)
    if named is None:
        return reply
    error = {"message": f"Unsupported parameter: {named!r}.", "type": "invalid_request_error", "param": named}
    return ServerReply(status=400, body={"error": error}, usage=None)


FAULTS: Mapping[str, Fault] = {
    "429 with Retry-After": _refusal(429, **{"retry-after": "0.05"}),
    "429": _refusal(429),
    "500": _refusal(500),
    "502": _refusal(502),
    "connection reset": lambda reply, body: replace(reply, wire="reset"),
    "hang": lambda reply, body: replace(reply, seconds=_HANG_SECONDS),
    "keep-alive drip": lambda reply, body: replace(reply, wire="drip"),
    "cut stream": lambda reply, body: replace(reply, wire="cut"),
    "empty JSON": lambda reply, body: replace(reply, text="{}"),
    "prose": lambda reply, body: replace(reply, text="I would rather talk about the weather."),
    "truncated JSON": lambda reply, body: replace(reply, text=reply.text[: len(reply.text) // 2]),
    "wrong schema": lambda reply, body: replace(reply, text='{"colour": "blue", "answer": {"x": [1]}}'),
    "missing usage": lambda reply, body: replace(reply, usage=None),
    "other usage": lambda reply, body: replace(
        reply, usage={"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
    ),
    "400 on a parameter": _unsupported,
}
"""Possible faults of a call, by name."""


@dataclass(kw_only=True)
class Misbehaving:
    """A behaviour in which a share of calls fail; the call and the seed determine which and how.

    A call that is repeated, or re-asked after a malformed reply, is served. `seen` counts calls by their
    hash, `struck` faults by their name.
    """

    inner: Behaviour
    share: float = 0.2
    seed: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)

    def __call__(self, body: dict[str, Any]) -> ServerReply:
        """See `Behaviour`."""
        reply, key = self.inner(body), request_hash(body)
        self.seen[key] += 1
        if self.seen[key] > 1 or self._drawn(key, "whether") >= self.share:
            return reply
        names = list(FAULTS)
        name = names[int(self._drawn(key, "which") * len(names))]
        self.struck[name] += 1
        return FAULTS[name](reply, body)

    def _drawn(self, key: str, what: str) -> float:
        digest = hashlib.sha256(f"{self.seed} {what} {key}".encode()).digest()
        return int.from_bytes(digest[:4]) / 2**32


def request_hash(body: Mapping[str, Any]) -> str:
    """A hash of the question of a call; a re-ask after a malformed reply has the same hash."""
    messages = body["messages"]
    if len(messages) > 2 and messages[-2]["role"] == "assistant":
        messages = messages[:-2]
    return hashlib.sha256(json.dumps([body.get("model"), messages]).encode()).hexdigest()[:16]


def _answering(body: dict[str, Any]) -> ServerReply:
    """Two routes that agree, and for every third question routes that all disagree, so that the loop repairs."""
    text = " ".join(message["content"] for message in body["messages"])
    number = int(_NUMBER.findall(text)[-1])
    said = f"answer {number}" if number % 3 else f"answer {request_hash(body)}"
    return ServerReply(text=json.dumps(universal_reply(said, deficit="reasoning_error")))


async def answers(behaviour: Behaviour) -> dict[str, str | None]:
    with loopback_server(behaviour) as server, tempfile.TemporaryDirectory() as folder:
        outcome = await answered(
            server.base_url,
            fresh_questions(24),
            Path(folder),
            concurrency=8,
            llm_timeout_seconds=5.0,
            response_cache=False,
        )
    return {row["id"]: row["prediction"] if row["error"] is None else None for row in outcome.rows}


@pytest.mark.slow
async def test_failing_calls_are_retried_and_lose_no_answer() -> None:
    undisturbed = Misbehaving(inner=_answering, share=0.0)
    disturbed = Misbehaving(inner=_answering, share=0.3, seed=1)
    plain, troubled = await answers(undisturbed), await answers(disturbed)
    assert len(disturbed.struck) >= 12
    assert len(plain) == 24
    assert None not in troubled.values()
    assert troubled == plain
    assert disturbed.seen.total() <= 1.5 * undisturbed.seen.total()
