"""A question is one trace of LangChain's: nodes and model calls with their stages and tokens."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from meta_agent_rag import Passage, answer, grounded_answer
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel, universal_reply
from meta_agent_rag.testing.server import helpful, loopback_server
from tests.integration.test_runner import environment

LIGHT = Passage.of("Selwick Light", "Selwick Light was designed by Anna Brandt in 1871.")
QUESTION = "Who designed Selwick Light?"
REPLY = universal_reply("Anna Brandt", quotes=[LIGHT.text], answer="Selwick Light was designed by Anna Brandt [1].")


class InMemoryTracer(BaseTracer):
    """Keeps whole traces."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def below(run: Run) -> list[Run]:
    """All runs below a run."""
    return [one for child in run.child_runs for one in (child, *below(child))]


def settings_in(folder: Path, **values: Any) -> Settings:
    return Settings.load(marag_data_dir=folder, response_cache=False, **values)


async def test_a_question_is_one_trace_with_stages_and_tokens(tmp_path: Path) -> None:
    tracer, model = InMemoryTracer(), ScriptedModel({"write": REPLY, "route": REPLY, "second_answer": REPLY})
    settings = settings_in(tmp_path)
    found = await answer(
        QUESTION, evidence=[LIGHT], settings=settings, model=model, config={"callbacks": [tracer], "tags": ["mine"]}
    )
    (root,) = tracer.roots
    assert root.name == "metarag"
    assert "mine" in (root.tags or [])
    nodes = [run.name for run in root.child_runs]
    assert nodes[:3] == ["retrieve", "write", "diagnose"]
    calls = [run for run in below(root) if run.run_type in ("llm", "chat_model")]
    assert sorted(call.name for call in calls) == sorted(row.stage for row in found.calls)
    for call in calls:
        about = (call.extra or {})["metadata"]
        assert about["stage"] == call.name
        assert about["tier"] in ("flash", "pro")
        message = (call.outputs or {})["generations"][0][0]["message"]["kwargs"]
        assert message["usage_metadata"]["output_tokens"] > 0
    write = next(call for call in calls if call.name == "write")
    assert any(run.name == "write" and write in below(run) for run in root.child_runs), "it lies below its node"


async def test_a_grounded_answer_and_its_check_are_one_trace(tmp_path: Path) -> None:
    tracer, model = InMemoryTracer(), ScriptedModel({"write": REPLY, "route": REPLY, "second_answer": REPLY})
    settings = settings_in(tmp_path, claim_check="critic")
    await grounded_answer(QUESTION, evidence=[LIGHT], settings=settings, model=model, config={"callbacks": [tracer]})
    (root,) = tracer.roots
    assert root.name == "grounded_answer"
    called = {run.name for run in below(root) if run.run_type in ("llm", "chat_model")}
    assert {"write", "check_claims"} <= called


@contextmanager
def collecting() -> Iterator[tuple[str, list[bytes]]]:
    """A collector of OpenTelemetry: its address, and what it is sent."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join()


def test_the_recipe_for_opentelemetry_needs_only_the_environment(tmp_path: Path) -> None:
    """As docs/operation.md says; LangSmith's library sends the spans, and nothing to LangSmith."""
    with collecting() as (address, received), loopback_server(helpful()) as server:
        env = environment(server.base_url, tmp_path / "data") | {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_OTEL_ENABLED": "true",
            "LANGSMITH_OTEL_ONLY": "true",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}/v1/traces",
        }
        command = [sys.executable, "-m", "meta_agent_rag.cli.main", "ask", "When was Mira Tolland born?"]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    sent = b"".join(received)
    for expected in (b"metarag", b"diagnose", b"second_answer", b"gen_ai.usage.input_tokens"):
        assert expected in sent
    assert b"sk-planted-secret" not in sent
