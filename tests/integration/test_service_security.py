"""What one key, one address or a full disk can do to others."""

import asyncio
import io
import json
import resource
import socket
import sqlite3
import stat
import zipfile
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from tests.integration.test_service_documents import TUNNEL, final_status, serving
from tests.loop import EVIDENCE, QUESTION, FakeRetriever
from tests.service import ASKED, Nursery, bearer, code_of, running, service_process


async def test_a_key_cannot_replace_or_delete_the_document_of_another(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, first):
        client = service.client
        second = bearer(await service.token_for("second", "ingest"))
        admin = bearer(await service.token_for("admin", "admin"))

        async def sent(key: dict[str, str], content: bytes) -> dict[str, str]:
            took = await client.post("/v1/documents", files=[("files", ("tunnel.md", content))], headers=key)
            return await final_status(service, key, took.json()["documents"][0]["id"])

        async def listed() -> list[str]:
            found = (await client.get("/v1/corpora/films/documents", headers=first)).json()["documents"]
            return [one["doc_id"] for one in found if one["file"] == "tunnel.md"]

        own = await sent(first, TUNNEL)
        others = await sent(second, TUNNEL.replace(b"1871", b"1872"))
        assert sorted(await listed()) == sorted([own["doc_id"], others["doc_id"]]), "each key has its own document"
        refused = await client.delete(f"/v1/corpora/films/documents/{own['doc_id']}", headers=second)
        assert (refused.status_code, code_of(refused)) == (403, "forbidden")
        assert (await client.delete(f"/v1/documents/{own['id']}", headers=second)).status_code == 404
        assert (await client.delete(f"/v1/documents/{others['id']}", headers=second)).status_code == 200
        assert await listed() == [own["doc_id"]]
        assert (await client.get(f"/v1/documents/{own['id']}", headers=first)).json()["state"] == "indexed"
        found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "1871" in found.found[0].passage.text
        newer = await sent(first, TUNNEL.replace(b"1871", b"1873"))
        assert await listed() == [newer["doc_id"]], "its own document is replaced"
        gone = await client.delete(f"/v1/corpora/films/documents/{newer['doc_id']}", headers=admin)
        assert (gone.status_code, await listed()) == (200, [])


async def test_a_key_sees_only_its_corpora(tmp_path: Path) -> None:
    served = {name: FakeRetriever({QUESTION: EVIDENCE}) for name in ("films", "secret")}
    async with running(tmp_path, retrievers=served) as service:
        client = service.client
        bound = bearer(await service.token_for("bound", "ask", "ingest", "admin", corpora=["films", "elsewhere"]))
        assert [one["name"] for one in (await client.get("/v1/corpora", headers=bound)).json()["corpora"]] == ["films"]
        assert [one["id"] for one in (await client.get("/v1/models", headers=bound)).json()["data"]] == ["films"]
        assert (await client.post("/v1/ask", json={"question": QUESTION}, headers=bound)).json()["corpus"] == "films"
        chat = {"model": "secret", "messages": [{"role": "user", "content": QUESTION}]}
        for method, address, body in (
            ("POST", "/v1/ask", {**ASKED, "corpus": "secret"}),
            ("POST", "/v1/ask", {**ASKED, "corpus": "secret", "mode": "coach"}),
            ("POST", "/v1/chat/completions", chat),
            ("GET", "/v1/models/secret", None),
            ("GET", "/v1/corpora/secret/documents", None),
            ("DELETE", "/v1/corpora/secret/documents/film", None),
        ):
            refused = await client.request(method, address, json=body, headers=bound)
            assert refused.status_code == 404, address
            assert refused.json()["error"]["message"] == "The corpus 'secret' is not served; choose from: films."
        files = {"files": ("a.txt", b"A text.")}
        assert (await client.post("/v1/documents?corpus=secret", files=files, headers=bound)).status_code == 404
        unbound = await client.post("/v1/ask", json={**ASKED, "corpus": "secret"})
        assert unbound.status_code == 200, "by default a key may use every corpus that is served"
        lost = bearer(await service.token_for("lost", corpora=["elsewhere"]))
        refused = await client.post("/v1/ask", json={"question": QUESTION}, headers=lost)
        assert (refused.status_code, code_of(refused)) == (403, "forbidden")


def test_the_database_is_private_whoever_creates_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = CliRunner().invoke(app, ["keys", "create", "site", "--corpus", "films", "--corpus", "plans"])
    assert made.exit_code == 0, made.output
    (listed,) = json.loads(CliRunner().invoke(app, ["keys", "list", "--json"]).stdout)
    assert listed["corpora"] == ["films", "plans"]
    with sqlite3.connect(data / "service.sqlite") as held:
        held.execute("SELECT 1 FROM service_keys").fetchone()
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in data.glob("service.sqlite*")}
    held.close()
    assert len(modes) == 3, "with the log files of SQLite"
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.slow
async def test_a_full_disk_is_not_ready(nursery: Nursery, tmp_path: Path) -> None:
    async with (
        service_process(nursery, tmp_path) as process,
        httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=30) as client,
    ):
        assert (await client.get("/readyz")).json()["status"] == "ready"
        limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        await asyncio.sleep(1.1)
        full = await client.get("/readyz")
        assert (full.status_code, full.json()["status"]) == (503, "unready"), full.text
        assert "disk" in full.json()["degraded"]
        assert (await client.post("/v1/ask", json=ASKED)).status_code == 503
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
        await asyncio.sleep(1.1)
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.post("/v1/ask", json=ASKED)).status_code == 200


@pytest.mark.slow
async def test_one_address_cannot_exhaust_the_descriptors(nursery: Nursery, tmp_path: Path) -> None:
    elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    async with (
        service_process(nursery, tmp_path) as process,
        httpx.AsyncClient(
            base_url=process.url, headers=bearer(process.token), timeout=30, transport=elsewhere
        ) as client,
    ):
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (150, 150))
        with ExitStack() as opened:
            for _ in range(400):
                opened.enter_context(socket.create_connection(("127.0.0.1", process.port)))
            assert (await client.post("/v1/ask", json=ASKED)).status_code == 200, "other addresses are served"
        await asyncio.sleep(0.5)
        with socket.create_connection(("127.0.0.1", process.port)) as again:
            again.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            assert again.recv(100).startswith(b"HTTP/1.1 200"), "and this one too, once it has closed its connections"
    said = process.log.read_text()
    assert said.count("too many are open") == 1, said
    assert "Traceback" not in said
    assert "cannot be accepted" not in said


async def test_a_broken_document_is_reported_without_addresses_in_memory(tmp_path: Path) -> None:
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": "<a/>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    async with serving(tmp_path) as (service, key):
        files = [("files", ("a.docx", buffer.getvalue()))]
        sent = await service.client.post("/v1/documents", files=files, headers=key)
        reported = await final_status(service, key, sent.json()["documents"][0]["id"])
        assert reported["state"] == "failed"
        assert "the file" in reported["message"]
        assert "object at" not in reported["message"]
