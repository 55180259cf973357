"""One question is one tree of spans, named by the semantic conventions, without user content by default."""

import gzip
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from meta_agent_rag.errors import RefusedError
from meta_agent_rag.exporting import tracer_provider
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.opening import open_retriever
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.server import helpful, loopback_server
from tests.forked import MARAG, RUNNER, forked
from tests.integration.test_runner import command, environment, in_process
from tests.loop import BIRTH_SENTENCE, QUESTION, WRONG, settings_in
from tests.service import CONTEXT, Running, running
from tests.spans import exported_text, named, paths, recorded

ROUTE = "POST /v1/ask"
RUN = f"{ROUTE} > invoke_workflow service"
MODELS = {"flash": "deepseek-v4-flash", "pro": "deepseek-v4-pro"}
KEY = "sk-nobody-may-see-this"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded() as exporter:
        yield exporter


@asynccontextmanager
async def serving(folder: Path, *assignments: str, model: ScriptedModel | None = None) -> AsyncIterator[Running]:
    """A service over the sample corpus, with a key that must not appear in spans."""
    assignments = (f"DEEPSEEK_API_KEY={KEY}", *assignments)
    async with (
        open_retriever(settings_in(folder, *assignments), encoder=AsyncEncoder(HashEncoder())) as hybrid,
        running(folder, *assignments, model=model, retrievers={"films": hybrid}) as service,
    ):
        yield service


async def test_one_question_is_one_tree(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    async with serving(tmp_path, "MAX_METACOGNITIVE_ROUNDS=1", model=ScriptedModel(WRONG)) as service:
        spans.clear()  # the service warms up with its own question
        parent = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
        response = await service.client.post(
            "/v1/ask", json={"question": QUESTION, "corpus": "films"}, headers={"traceparent": parent}
        )
        assert response.status_code == 200
    assert paths(spans) == [
        ROUTE,
        RUN,
        f"{RUN} > node retrieve",
        f"{RUN} > node retrieve > retrieval sample",
        f"{RUN} > node write",
        f"{RUN} > node write > chat {MODELS['flash']}",
        f"{RUN} > node diagnose",
        f"{RUN} > node diagnose > chat {MODELS['flash']}",
        f"{RUN} > node diagnose > chat {MODELS['pro']}",
        f"{RUN} > node reasoning_error",
        f"{RUN} > node write",
        f"{RUN} > node write > chat {MODELS['pro']}",
        f"{RUN} > node diagnose",
    ]
    served = named(spans, ROUTE)[0]
    assert served.parent is not None
    assert f"{served.parent.trace_id:032x}" == "0123456789abcdef0123456789abcdef", "the client's trace is continued"
    assert served.kind is SpanKind.SERVER
    request = dict(served.attributes or {})
    assert (request["http.route"], request["http.response.status_code"]) == ("/v1/ask", 200)
    run = dict(named(spans, "invoke_workflow")[0].attributes or {})
    assert run["gen_ai.operation.name"] == "invoke_workflow"
    assert run["gen_ai.workflow.name"] == "service"
    assert (run["marag.rounds"], run["marag.question_id"]) == (2, response.json()["query_id"])
    call = named(spans, "chat")[0]
    reported = dict(call.attributes or {})
    assert call.kind is SpanKind.CLIENT
    assert reported["gen_ai.operation.name"] == "chat"
    assert reported["gen_ai.provider.name"] == "deepseek"
    assert reported["gen_ai.request.model"] == MODELS["flash"]
    assert reported["gen_ai.response.finish_reasons"] == ("stop",)
    assert int(str(reported["gen_ai.usage.input_tokens"])) > 100
    assert int(str(reported["gen_ai.usage.output_tokens"])) > 10
    assert 0 < float(str(reported["marag.cost_usd"])) < 0.01
    assert (reported["marag.stage"], reported["marag.round"]) == ("write", 0)
    search = dict(named(spans, "retrieval")[0].attributes or {})
    assert search["gen_ai.operation.name"] == "retrieval"
    assert (search["gen_ai.data_source.id"], search["gen_ai.request.top_k"]) == ("sample", 5)
    assert search["marag.passages.found"] == 5


@pytest.mark.parametrize("content", [False, True])
async def test_spans_contain_content_only_if_enabled_and_never_secrets(
    content: bool, spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    async with running(
        tmp_path, f"TELEMETRY_CONTENT={content}", f"DEEPSEEK_API_KEY={KEY}", model=ScriptedModel(WRONG)
    ) as service:
        response = await service.client.post("/v1/ask", json=CONTEXT, headers={"x-request-id": QUESTION[:5]})
        assert response.status_code == 200
        secrets = [service.token, service.token[-43:], KEY]
    reported = exported_text(spans)
    assert all((words in reported) == content for words in (QUESTION, BIRTH_SENTENCE, "Paris"))
    assert not any(secret in reported for secret in secrets)
    if content:
        asked = json.loads(str((named(spans, "chat")[-1].attributes or {})["gen_ai.input.messages"]))
        assert asked[0]["role"] == "system"
        assert asked[0]["parts"][0]["type"] == "text"


async def test_errors_are_recorded_by_type(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    model = ScriptedModel({**WRONG, "write": RefusedError(f"The server said {QUESTION!r} and {KEY}.")})
    async with running(tmp_path, model=model) as service:
        assert (await service.client.post("/v1/ask", json=CONTEXT)).status_code == 503
    failed = {span.name: span for span in spans.get_finished_spans() if span.status.status_code is StatusCode.ERROR}
    kinds = {name: str((span.attributes or {})["error.type"]) for name, span in failed.items()}
    assert kinds == {
        f"chat {MODELS['flash']}": "RefusedError",
        "node write": "RefusedError",
        "invoke_workflow service": "RefusedError",
        ROUTE: "503",
    }
    assert not any(word in exported_text(spans) for word in (QUESTION, KEY))


async def test_a_hanging_call_ends_its_span_as_a_timeout(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    async with running(tmp_path, "SERVICE_DEADLINE_SECONDS=0.5", model=ScriptedModel(WRONG)) as service:
        spans.clear()
        service.model.seconds = 30.0
        assert (await service.client.post("/v1/ask", json=CONTEXT)).status_code == 504
    assert (named(spans, "chat")[0].attributes or {})["error.type"] == "TimeoutError"
    assert (named(spans, ROUTE)[0].attributes or {})["error.type"] == "504"


COLLECTED: list[tuple[str, bytes]] = []


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        COLLECTED.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collecting() -> Iterator[str]:
    """Run a collector that stores requests in `COLLECTED`; yields its URL."""
    COLLECTED.clear()
    with HTTPServer(("127.0.0.1", 0), _Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    ("module", "words"),
    [(RUNNER, command("--n", "1", "--method", "metarag")), (MARAG, ["ask", "When was Mira Tolland born?"])],
)
def test_commands_send_their_spans(module: str, words: list[str], tmp_path: Path) -> None:
    with collecting() as address, loopback_server(helpful()) as server:
        env = environment(server.base_url, tmp_path / "data") | {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        child = forked(module, words, env, tmp_path)
        assert child.ended() == 0, child.err.read_text()
    reported = b"".join(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body for _, body in COLLECTED)
    for expected in (b"invoke_workflow metarag", b"node write", b"chat deepseek-v4-flash", b"marag.cost_usd"):
        assert expected in reported
    assert b"sk-planted-secret" not in reported


def test_each_row_of_a_benchmark_is_one_trace(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    with loopback_server(helpful()) as server:
        env = environment(server.base_url, tmp_path / "data")
        done = in_process(["--n", "1", "--method", "metarag,standard_rag,self_consistency", "--judge"], env)
    assert done.exit_code == 0, done.output
    roots = [span.name for span in spans.get_finished_spans() if span.parent is None]
    assert sorted(roots) == ["question metarag", "question self_consistency", "question standard_rag"]
    chat = [path for path in paths(spans) if "chat" in path]
    assert all(path.startswith("question ") for path in chat)
    priced = [span.attributes or {} for span in named(spans, "chat")]
    assert all(one["gen_ai.usage.cost"] == one["marag.cost_usd"] for one in priced)


def test_spans_are_sent_to_the_configured_endpoint(tmp_path: Path) -> None:
    with collecting() as address:
        provider = tracer_provider(settings_in(tmp_path, f"OTEL_EXPORTER_OTLP_ENDPOINT={address}"))
        assert provider is not None
        provider.get_tracer("tests").start_span("a span of the tests").end()
        provider.shutdown()
    ((path, body),) = COLLECTED
    assert path == "/v1/traces"
    assert b"a span of the tests" in body
    assert b"meta-agent-rag" in body
    assert tracer_provider(Settings.load()) is None, "nothing is sent unless an endpoint is set"


def test_a_missing_extra_is_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with caplog.at_level(logging.WARNING):
        assert tracer_provider(settings_in(tmp_path, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318")) is None
    (line,) = caplog.messages
    assert "meta-agent-rag[telemetry]" in line
