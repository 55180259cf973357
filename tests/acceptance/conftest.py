"""One model server, one small library of documents and one service for all acceptance tests."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.testing.server import LoopbackServer, ServerReply, loopback_server
from tests.acceptance.doors import Model, Service, environment, marag, pdf, rows, started, word

PUMP = "The Arden pump delivers 40 litres a minute."
IMPELLER = "Its impeller is made of bronze and lasts nine years."
MILL = "The Weir Mill was built by Ada Lind in 1912."
NOVEL = "Based on my knowledge of rivers, wrote the old miller, no flood has ever reached this door."


@pytest.fixture(scope="session")
def _model_server() -> Iterator[tuple[LoopbackServer, list[Model]]]:
    current = [Model()]

    def behaviour(body: dict[str, Any]) -> ServerReply:
        return current[0].reply(body)

    with loopback_server(behaviour) as server:
        yield server, current


@pytest.fixture
def model(_model_server: tuple[LoopbackServer, list[Model]]) -> Model:
    """The model behind every command of this test."""
    _model_server[1][0] = Model()
    return _model_server[1][0]


@pytest.fixture(scope="session")
def _library(_model_server: tuple[LoopbackServer, list[Model]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the corpus `library`: a PDF, a Word file, a web page, Markdown, text and passages."""
    home = tmp_path_factory.mktemp("library")
    documents = home / "documents"
    documents.mkdir()
    (documents / "pumps.pdf").write_bytes(pdf([[PUMP], [IMPELLER]], title="Pumps"))
    (documents / "rivers.docx").write_bytes(word(title="Rivers of Europe"))
    (documents / "mill.html").write_text(f"<title>Mills</title><h1>The mill</h1><p>{MILL}</p>")
    (documents / "harbour.md").write_text(
        "---\ntitle: Harbour rules\n---\n# Harbour rules\n\n## Mooring\n\nA mooring costs 12 euros a night.\n"
    )
    (documents / "diary.txt").write_text(f"The miller's diary.\n\n{NOVEL}\n")
    (documents / "facts.jsonl").write_bytes(
        rows({"id": "fog", "title": "Fog", "text": "Fog is a cloud at the ground."})
    )
    words = ("ingest", str(documents), "--corpus", "library", "--json")
    told = marag(*words, **environment(_model_server[0]), MARAG_DATA_DIR=str(home / "data"))
    assert json.loads(told.stdout)["counts"]["added"] == 6, told.output
    return home


@pytest.fixture(autouse=True)
def data(
    isolated: None, _model_server: tuple[LoopbackServer, list[Model]], _library: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The test's own data folder, with the library; every command uses the loopback model."""
    folder = Path("data").absolute()
    shutil.copytree(_library / "data", folder, dirs_exist_ok=True, symlinks=True)
    for name, value in environment(_model_server[0]).items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture(scope="session")
def _service(
    _model_server: tuple[LoopbackServer, list[Model]], _library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("service")
    shutil.copytree(_library / "data", home / "data")
    shutil.copytree(_library / "documents", home / "documents")
    own = {"MARAG_DATA_DIR": str(home / "data"), "SERVICE_DEADLINE_SECONDS": "8", "SERVICE_RATE_PER_MINUTE": "15"}
    env = {**environment(_model_server[0]), **own}
    with started(["serve", "--corpus", "library"], "/healthz", home / "service.log", env) as url:
        yield Service(url=url, data=home / "data", log=home / "service.log", env=env)


@pytest.fixture
def service(_service: Service, model: Model) -> Service:
    """A running `marag serve` over the library."""
    return _service
