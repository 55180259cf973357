"""Uploads into a corpus in use: who may replace and delete them, across failures and kills; and rejected uploads."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from meta_agent_rag.errors import CorpusError
from meta_agent_rag.ingestion.pipeline import chunking_of
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import Catalogue, DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.stores.embedded import WordStore
from meta_agent_rag.service import uploads
from meta_agent_rag.service.uploads import safe_name
from tests.loop import BIRTH, BIRTH_SENTENCE, FILM, FILM_SENTENCE, QUESTION, settings_in
from tests.service import CONTEXT, Running, bearer, code_of, film_retrievers, running, service_process

BRIDGE = b"# The Mill Bridge\n\nThe Mill Bridge has nine arches of grey stone.\n"
TUNNEL = b"# The Ridge Tunnel\n\nThe Ridge Tunnel was dug in 1871 by Ines Karstad and forty men.\n"
LIST = "/v1/corpora/films/documents"
Key = dict[str, str]


@asynccontextmanager
async def serving(folder: Path, *assignments: str) -> AsyncIterator[tuple[Running, Key]]:
    """A service over a corpus of two documents and one in memory, and the header of a key that may upload."""
    assignments = ("SERVICE_RATE_PER_MINUTE=10000", *assignments)
    settings, encoder = settings_in(folder, *assignments), AsyncEncoder(HashEncoder())
    if not (settings.marag_data_dir / "corpora" / "films").exists():
        chunker = chunking_of(settings).name
        async with edit_corpus(settings, "films", encoder, chunker=chunker) as editor:
            for one in (FILM, BIRTH):
                record = DocumentRecord(id=one.doc_id, source=one.title, title=one.title, kind="text", content_hash="0")
                await editor.put(record, [one])
    async with (
        open_retriever(settings, "films", encoder=encoder) as retriever,
        running(folder, *assignments, retrievers={"films": retriever, "shelf": film_retrievers()["films"]}) as service,
    ):
        yield service, bearer(await service.token_for("uploads", "ingest"))


async def sent(service: Running, key: Key, **files: bytes) -> list[dict[str, Any]]:
    """Upload Markdown files in one request, and wait until they are read."""
    parts = [("files", (f"{name}.md", content)) for name, content in files.items()]
    taken = await service.client.post("/v1/documents", files=parts, headers=key)
    assert taken.status_code == 202, taken.text
    return [await final_status(service, key, one["id"]) for one in taken.json()["documents"]]


async def final_status(service: Running, key: Key, id_: str) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while True:
            reported = (await service.client.get(f"/v1/documents/{id_}", headers=key)).json()
            if reported["state"] in {"indexed", "failed"}:
                return dict(reported)
            await asyncio.sleep(0.05)


async def held_by(service: Running) -> list[str]:
    """The files of the uploaded documents in the corpus."""
    listed = (await service.client.get(LIST)).json()["documents"]
    return sorted(one["file"] for one in listed if one["file"].endswith(".md"))


def files_of(service: Running) -> list[str]:
    folder = service.service.settings.marag_data_dir / "uploads"
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock")


async def dug(service: Running) -> str:
    found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
    return found.found[0].passage.text


async def test_an_uploaded_document_is_found_replaced_and_deleted(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        (tunnel,) = await sent(service, key, tunnel=TUNNEL)
        assert (tunnel["state"], tunnel["passages"], tunnel["message"]) == ("indexed", 1, None)
        assert "Ines Karstad" in await dug(service)
        assert await held_by(service) == files_of(service) == ["tunnel.md"]
        corpora = (await service.client.get("/v1/corpora")).json()["corpora"]
        assert [(one["name"], one["takes_documents"]) for one in corpora] == [("films", True), ("shelf", False)]
        (copy,) = await sent(service, key, copy=TUNNEL)
        assert (copy["state"], copy["passages"], "another document" in copy["message"]) == ("indexed", 0, True)
        (newer,) = await sent(service, key, tunnel=BRIDGE)
        assert (newer["id"], newer["passages"]) == (tunnel["id"], 1)
        assert (await final_status(service, key, copy["id"]))["passages"] == 1, "the copy takes over"
        assert await held_by(service) == ["copy.md", "tunnel.md"]
        (broken,) = await sent(service, key, tunnel=b"\x00\x01" * 99)
        assert (broken["state"], broken["message"].startswith("'tunnel.md' was rejected: ")) == ("failed", True)
        assert await held_by(service) == ["copy.md", "tunnel.md"], "the earlier version is kept"
        for one in (copy, newer):
            gone = await service.client.delete(f"/v1/documents/{one['id']}", headers=key)
            assert gone.status_code == 204
            assert (await service.client.get(f"/v1/documents/{one['id']}", headers=key)).status_code == 404
        assert await held_by(service) == files_of(service) == []


async def test_a_key_cannot_replace_or_delete_the_document_of_another(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, first):
        second, admin = [bearer(await service.token_for(name, name)) for name in ("ingest", "admin")]
        (own,) = await sent(service, first, tunnel=TUNNEL)
        (others,) = await sent(service, second, tunnel=TUNNEL.replace(b"1871", b"1872"))
        assert await held_by(service) == ["tunnel.md"] * 2, "each key has its own document"
        for method in ("GET", "DELETE"):
            refused = await service.client.request(method, f"/v1/documents/{own['id']}", headers=second)
            assert (refused.status_code, code_of(refused)) == (404, "not_found")
        assert (await service.client.delete(f"/v1/documents/{others['id']}", headers=second)).status_code == 204
        assert "1871" in await dug(service)
        (same,) = await sent(service, second, twin=TUNNEL)
        assert same["passages"] == 0
        assert (await service.client.delete(f"/v1/documents/{own['id']}", headers=first)).status_code == 204
        assert (await final_status(service, second, same["id"]))["passages"] == 1
        assert "1871" in await dug(service)
        assert (await service.client.delete(f"/v1/documents/{same['id']}", headers=admin)).status_code == 204
        assert await held_by(service) == []


@pytest.mark.slow
async def test_acknowledged_uploads_survive_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENCODER", HashEncoder().name)
    async with serving(tmp_path / "data"):
        pass  # builds the corpus
    async with service_process(tmp_path, corpora=["films"], scopes=("ask", "ingest")) as process:
        names: dict[str, str] = {}
        chance = random.Random(7)
        for kill in range(10):
            async with httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=30) as client:
                for number in range(2):
                    text = f"# Inn {kill} {number}\n\nThe inn number {kill} {number} burnt down.\n"
                    files = [("files", (f"inn-{kill}-{number}.md", text.encode()))]
                    took = await client.post("/v1/documents", files=files)
                    assert took.status_code == 202, took.text
                    names[took.json()["documents"][0]["id"]] = f"inn-{kill}-{number}.md"
            await asyncio.sleep(0.5 * chance.random())
            await asyncio.to_thread(process.stop, signal.SIGKILL)
            await asyncio.to_thread(process.start)
        async with httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=30) as client:
            async with asyncio.timeout(120):
                while True:
                    listed = (await client.get("/v1/documents?limit=1000")).json()["documents"]
                    if all(one["state"] != "queued" for one in listed):
                        break
                    await asyncio.sleep(0.2)
            assert {one["id"]: one["name"] for one in listed} == names
            assert {(one["state"], one["passages"]) for one in listed} == {("indexed", 1)}, listed
            held = (await client.get(f"{LIST}?limit=1000")).json()["documents"]
            assert sorted(one["file"] for one in held if one["file"].startswith("inn-")) == sorted(names.values())


@pytest.mark.parametrize("place", ["index", "catalogue"])
async def test_a_corpus_that_fails_for_a_while_loses_no_upload(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_REST_SECONDS", 0.1)
    monkeypatch.setattr(uploads, "_TRIES", 4)
    async with serving(tmp_path) as (service, key):
        owner, name = (WordStore, "_write") if place == "index" else (Catalogue, "documents")
        work, failures = getattr(owner, name), [CorpusError("The corpus does not answer.")] * 2

        def failing(*given: Any) -> Any:
            if failures:
                raise failures.pop()
            return work(*given)

        monkeypatch.setattr(owner, name, failing)
        (tunnel,) = await sent(service, key, tunnel=TUNNEL)
        assert (tunnel["state"], tunnel["passages"], failures) == ("indexed", 1, [])
        failures += [CorpusError("The corpus is gone.")] * uploads._TRIES
        (bridge,) = await sent(service, key, bridge=BRIDGE)
        assert (bridge["state"], failures) == ("failed", []), "a lasting failure ends"
        assert bridge["message"].endswith("send the file again.")
        (bridge,) = await sent(service, key, bridge=BRIDGE)
        assert bridge["state"] == "indexed"


async def test_deleting_a_document_spares_a_newer_one_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (service, key):
        (tunnel,) = await sent(service, key, tunnel=TUNNEL)
        remove = uploads.Uploads._remove

        async def overtaken(own: uploads.Uploads, upload: uploads.Upload) -> None:
            await remove(own, upload)
            files = {"files": ("tunnel.md", BRIDGE)}
            assert (await service.client.post("/v1/documents", files=files, headers=key)).status_code == 202

        monkeypatch.setattr(uploads.Uploads, "_remove", overtaken)
        assert (await service.client.delete(f"/v1/documents/{tunnel['id']}", headers=key)).status_code == 204
        assert (await final_status(service, key, tunnel["id"]))["state"] == "indexed"
        assert await held_by(service) == files_of(service) == ["tunnel.md"]


async def test_nothing_is_read_of_an_upload_without_the_scope(tmp_path: Path) -> None:
    sent_parts: list[int] = []

    async def body() -> AsyncIterator[bytes]:
        for number in range(9):
            sent_parts.append(number)
            yield b"x" * 1000

    async with running(tmp_path) as service:
        header = {"Content-Type": "multipart/form-data; boundary=x"}
        refused = await service.client.post("/v1/documents", content=body(), headers=header)
        assert (refused.status_code, sent_parts) == (403, [])


async def test_rejected_uploads_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, "INGEST_FILE_MB=0.01") as (service, key):
        small = {"files": ("a.txt", b"A text.")}

        async def refused(path: str = "/v1/documents", **body: Any) -> tuple[int, str]:
            response = await service.client.post(path, headers={**key, **body.pop("headers", {})}, **body)
            return response.status_code, code_of(response)

        assert await refused(files={"files": ("a.txt", b"x" * 20_000)}) == (413, "too_large")
        unannounced = {"content-type": "multipart/form-data; boundary=b"}
        assert await refused(content=_endless(), headers=unannounced) == (413, "too_large")
        assert await refused(files={"files": ("a.exe", b"MZ")}) == (415, "unsupported_type")
        assert await refused(json={"files": "a"}) == (422, "invalid_request")
        assert await refused(files={"other": ("a.txt", b"A text.")}) == (422, "invalid_request")
        assert await refused(files=small, data={"corpus": "films"}) == (422, "invalid_request")
        cut = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nA te'
        assert await refused(content=cut, headers=unannounced) == (422, "invalid_request")
        assert await refused(files=[("files", ("a.txt", b"A"))] * 21) == (422, "invalid_request")
        assert await refused("/v1/documents?corpus=../secrets", files=small) == (404, "unknown_corpus")
        assert await refused("/v1/documents?corpus=shelf", files=small) == (409, "read_only")
        assert await refused(files=small, headers=bearer(service.token)) == (403, "forbidden")
        monkeypatch.setattr("meta_agent_rag.service.app.UPLOAD_SECONDS", 0.2)
        assert await refused(content=_endless(0.3), headers=unannounced) == (408, "upload_too_slow")
        assert not files_of(service)


async def _endless(pause: float = 0.0) -> AsyncIterator[bytes]:
    yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    while True:
        await asyncio.sleep(pause)
        yield b"x" * 100


@pytest.mark.parametrize(
    "given",
    ["", ".", "..", "a/..", "\x00", "x" * 500 + ".md", "é" * 300 + ".pdf", "a\r\nb.txt", "\u202etxt.exe", "\ud800"],
)
def test_file_names_are_always_sanitised(given: str) -> None:
    name = safe_name(given)
    assert name not in {"", ".", ".."}
    assert not set(name) & set("/\\\x00\r\n\u202e\ud800")
    assert len(name.encode()) <= 240
    assert Path(name).suffix == Path(given).suffix


def test_different_file_names_stay_different() -> None:
    ends = "the same long end of a name " * 10
    given = ["C++.md", "C#.md", "\u0915\u093f.md", "\u0915\u0940.md", "a, b.md", "a; b.md"]
    given += [f"May {ends}.md", f"June {ends}.md"]
    assert len({safe_name(one) for one in given}) == len(given)


async def test_a_question_can_name_its_document(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, _):
        for question, found in ((QUESTION, {"film", "birth"}), (f"@birth {QUESTION}", {"birth"})):
            told = (await service.ask(question=question)).json()
            record = (await service.client.get(f"/v1/queries/{told['query_id']}")).json()["record"]
            assert (record["question"], {one["doc_id"] for one in record["passages"]}) == (question, found)
        prompt = service.model.asked("write")[-1].messages[-1].content
        assert (BIRTH_SENTENCE in prompt, FILM_SENTENCE in prompt, "@birth" in prompt) == (True, False, False)
        refused = await service.ask(question="@brith Who?")
        assert (refused.status_code, "did you mean 'Birth'?" in refused.text) == (422, True), refused.text
        told = await service.client.post("/v1/ask", json={**CONTEXT, "question": "Which documents are there?"})
        assert (told.status_code, "Film" in told.json()["answer"]) == (200, False), "a text is not a corpus"
