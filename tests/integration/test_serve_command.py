"""`marag serve` with a model over HTTP, from start to SIGTERM, and errors that prevent starting."""

import asyncio
import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.testing import universal_reply
from meta_agent_rag.testing.server import ServerReply, always
from tests.loopback import Serve
from tests.service import ASKED, GOOD, Nursery, bearer, code_of, service_process


@pytest.mark.slow
async def test_a_started_service_answers_cancels_and_drains(
    serve: Serve, nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(always(ServerReply(text=json.dumps({**universal_reply("Oslo"), **GOOD}))))
    monkeypatch.setenv("LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("SERVICE_DEADLINE_SECONDS", "3")
    good = server.behaviour
    async with (
        service_process(nursery, tmp_path) as process,
        httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=20) as client,
    ):
        reported = await client.post("/v1/ask", json=ASKED)
        assert (reported.status_code, reported.json()["short_answer"]) == (200, "Oslo"), reported.text
        assert "server" not in reported.headers
        server.behaviour = always(ServerReply(seconds=30))
        started = time.monotonic()
        late = await client.post("/v1/ask", json=ASKED)
        assert (late.status_code, code_of(late)) == (504, "timeout")
        assert 2.6 < time.monotonic() - started < 3.8
        server.behaviour = lambda body: replace(good(body), seconds=0.5)
        under_way = asyncio.create_task(client.post("/v1/ask", json=ASKED))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        code = await asyncio.to_thread(process.stop, signal.SIGTERM)
        assert time.monotonic() - started < 10
        assert (await under_way).status_code == 200, "the answer in progress is completed"
    said = process.log.read_text()
    assert code == 0, said
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["status"] for line in lines if line.get("path") == "/v1/ask"] == [200, 504, 200]
    assert lines[-1]["message"] == "Stopped."
    assert ASKED["question"] not in said
    assert process.token not in said
    kept = await asyncio.to_thread(CliRunner().invoke, app, ["audit", "tail", "--json"])
    assert [row["status"] for row in json.loads(kept.stdout)] == [200, 504, 200]


def test_startup_errors_are_reported_in_one_sentence(tmp_path: Path) -> None:
    for words, said in (
        (["--host", "no.such.host.invalid"], "listen"),
        (["--port", "0", "--set", "DATABASE_URL=mysql://host/name"], "mysql"),
        (["--port", "0", "--set", "DATABASE_URL=postgresql://me:hush@127.0.0.1:1/none"], "DATABASE_URL"),
        (["--port", "0", "--set", "SERVICE_DEADLINE_SECONDS=0"], "SERVICE_DEADLINE_SECONDS"),
    ):
        done = CliRunner().invoke(app, ["serve", *words])
        assert done.exit_code == 2, done.output
        assert said in done.output, done.output
        assert "Traceback" not in done.output
        assert "hush" not in done.output
