"""The service conforms to its OpenAPI document, with valid and invalid requests made by schemathesis."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from meta_agent_rag.ingestion.pipeline import chunking_of
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.service.access import SCOPES
from meta_agent_rag.service.app import create_app
from meta_agent_rag.service.resources import Service, open_service
from meta_agent_rag.service.uvicorn_server import server_config
from meta_agent_rag.settings import Settings, child_environment
from meta_agent_rag.testing import ScriptedModel
from tests.loop import settings_in

SEED = 20260
_CORPUS = "schema"
_TEXT = "The Salt Road is a film that Mira Holt directed."
LIMITLESS = ("SERVICE_RATE_PER_MINUTE=1000000", "SERVICE_WRONG_KEYS_PER_MINUTE=1000000", "SERVICE_DEADLINE_SECONDS=60")
_ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "422", "429"]
_CONFIG = f"""
[checks.positive_data_acceptance]
expected-statuses = {_ACCEPTED}

[[operations]]
include-name = "POST /v1/chat/completions"
checks.positive_data_acceptance.expected-statuses = {[*_ACCEPTED, "400"]}

[[operations]]
include-name = "POST /v1/documents"
checks.positive_data_acceptance.expected-statuses = {[*_ACCEPTED, "413", "415"]}
"""
"""What a schema cannot express: which fields go together, blank texts, and which names a file may have."""
_EXCLUDED = "use_after_free"
"""A deleted document can still be asked for: its state confirms that it is deleted."""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The number of requests, the number of schemathesis's findings, and its output."""

    cases: int
    failures: int
    said: str


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """A service over one small corpus on a free loopback port: its URL, and a key with all scopes."""
    from uvicorn import Server

    encoder = AsyncEncoder(HashEncoder())
    chunker = chunking_of(settings).name
    passage = Passage(id="film", doc_id="film", title="Film", text=_TEXT)
    record = DocumentRecord(id="film", source="film", title="Film", kind="text", content_hash="0")
    async with edit_corpus(settings, _CORPUS, encoder, chunker=chunker) as editor:
        await editor.put(record, [passage])
    async with (
        open_retriever(settings, _CORPUS, encoder=encoder) as retriever,
        open_service(
            settings,
            (),
            model=ScriptedModel(),
            monitor_encoder=encoder,
            retrievers={_CORPUS: retriever},
        ) as service,
    ):

        @asynccontextmanager
        async def opened() -> AsyncIterator[Service]:
            yield service

        token, _ = await service.keys.create("schema", SCOPES)
        server = Server(server_config(create_app(opened)))
        server.config.port = 0
        running = asyncio.create_task(server.serve())
        try:
            while not server.started:  # noqa: ASYNC110  # it does not report when it has started
                await asyncio.sleep(0.02)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}", token
        finally:
            server.should_exit = True
            await running


async def examine(url: str, token: str, folder: Path, *, each: int, seed: int, phases: str = "") -> Examination:
    """Run schemathesis in its own process, with at most `each` generated requests per operation and phase."""
    report, config = folder / "report.json", folder / "schemathesis.toml"
    await asyncio.to_thread(config.write_text, _CONFIG, "utf-8")
    words = [
        *("-c", "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"),
        *("run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {token}"),
        *(
            "--checks",
            "all",
            "--exclude-checks",
            _EXCLUDED,
            "--max-examples",
            str(each),
            "--seed",
            str(seed),
            "--continue-on-failure",
        ),
        *("--report", "json", "--report-json-path", str(report), "--warnings", "off"),
        *(("--phases", phases) if phases else ()),
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=folder,
        env=child_environment(NO_COLOR="1"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode("utf-8", "replace")
    if not report.is_file():
        return Examination(cases=0, failures=1, said=said)
    counted = json.loads(await asyncio.to_thread(report.read_text, "utf-8"))["test_cases"]
    failures = counted["unique_failures"] + counted["errored"]
    if process.returncode != 0:
        failures = max(1, failures)
    return Examination(cases=counted["generated"], failures=failures, said=said)


@pytest.mark.slow
async def test_schemathesis_finds_no_errors(tmp_path: Path) -> None:
    async with serving(settings_in(tmp_path, *LIMITLESS)) as (url, token):
        found = await examine(url, token, tmp_path, each=2, seed=SEED, phases="coverage,fuzzing")
    assert found.failures == 0, found.said
    assert found.cases >= 12, found.said
