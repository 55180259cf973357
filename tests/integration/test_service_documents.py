"""Uploads into a corpus in use, across restarts, and rejected uploads."""

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
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import CorpusEditor, edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.open_retriever import open_retriever
from meta_agent_rag.retrieval.stores import words
from meta_agent_rag.service import uploads
from meta_agent_rag.service.uploads import safe_name
from tests.loop import BIRTH, FILM, settings_in
from tests.service import Nursery, Running, bearer, code_of, running, service_process

BRIDGE = b"# The Mill Bridge\n\nThe Mill Bridge has nine arches of grey stone.\n"
TUNNEL = b"# The Ridge Tunnel\n\nThe Ridge Tunnel was dug in 1871 by Ines Karstad and forty men.\n"
KEPT = ("../../etc/passwd.txt", "passwd.txt"), ("/abs/plan.md", "plan.md"), ("C:\\a\\b.md", "b.md")


@asynccontextmanager
async def serving(folder: Path, *assignments: str) -> AsyncIterator[tuple[Running, dict[str, str]]]:
    """A service over a corpus of two documents, and the header of a key that may upload."""
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
        running(folder, *assignments, retrievers={"films": retriever, "shelf": _Shelf()}) as service,
    ):
        yield service, bearer(await service.token_for("uploads", "ingest"))


class _Shelf:
    async def retrieve(self, queries: Any, *, k: int, exclude: Any = frozenset()) -> Any:
        raise NotImplementedError


async def final_status(service: Running, key: dict[str, str], id_: str) -> dict[str, Any]:
    """Wait for a document's final status."""
    async with asyncio.timeout(120):
        while True:
            reported = (await service.client.get(f"/v1/documents/{id_}", headers=key)).json()
            if reported["state"] in {"indexed", "failed"}:
                return dict(reported)
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_an_uploaded_document_is_found_by_the_running_service(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        post = service.client.post
        files = [
            ("files", ("../../tunnel.md", TUNNEL)),
            ("files", ("broken.pdf", b"%PDF-1.7 no more")),
            ("files", ("copy.md", TUNNEL)),
        ]
        accepted = await post("/v1/documents?corpus=films", files=files, headers=key)
        assert accepted.status_code == 202, accepted.text
        documents = accepted.json()["documents"]
        assert [one["name"] for one in documents] == ["tunnel.md", "broken.pdf", "copy.md"]
        tunnel, broken, copy = [await final_status(service, key, one["id"]) for one in documents]
        assert (tunnel["state"], tunnel["passages"], tunnel["message"]) == ("indexed", 1, None), tunnel
        assert (broken["state"], broken["passages"]) == ("failed", 0)
        assert broken["message"].startswith("'broken.pdf' was rejected: ")
        assert (copy["state"], "another document" in copy["message"]) == ("indexed", True), copy
        retriever = service.service.retrievers["films"]
        found = await retriever.retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "Ines Karstad" in found.found[0].passage.text
        corpora = (await service.client.get("/v1/corpora")).json()["corpora"]
        assert [(one["name"], one["documents"], one["takes_documents"]) for one in corpora] == [
            ("films", 3, True),
            ("shelf", None, False),
        ]
        changed = [("files", ("tunnel.md", TUNNEL.replace(b"1871", b"1872")))]
        (again,) = (await post("/v1/documents", files=changed, headers=key)).json()["documents"]
        assert (await final_status(service, key, again["id"]))["state"] == "indexed"
        assert (await final_status(service, key, copy["id"]))["passages"] == 1
        assert (await service.client.get("/v1/corpora")).json()["corpora"][0]["documents"] == 4, (
            "the document is replaced, but its copy is independent"
        )
        stranger = bearer(await service.token_for("others", "ingest"))
        other = await service.client.get(f"/v1/documents/{tunnel['id']}", headers=stranger)
        assert (other.status_code, code_of(other)) == (404, "not_found")
        kept = {path.name: path.read_bytes() for path in files_of(service)}
        assert kept == {"tunnel.md": changed[0][1][1], "copy.md": TUNNEL}, "the originals of what is in the corpus"
        metrics = service.service.metrics.text(audit_waiting=0).decode()
        assert 'marag_documents_total{state="failed"} 1.0' in metrics


def files_of(service: Running) -> list[Path]:
    folder = service.service.settings.marag_data_dir / "uploads"
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


@pytest.mark.slow
async def test_acknowledged_uploads_survive_ten_kills(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENCODER", HashEncoder().name)
    async with serving(tmp_path / "data"):
        pass  # builds the corpus
    async with service_process(nursery, tmp_path, corpora=["films"], scopes=("ask", "ingest")) as process:
        sent: dict[str, str] = {}
        chance = random.Random(7)
        for kill in range(10):
            async with httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=30) as client:
                for number in range(3):
                    text = f"# Inn {kill} {number}\n\nThe inn number {kill} {number} burnt down.\n"
                    files = [("files", (f"inn-{kill}-{number}.md", text.encode()))]
                    took = await client.post("/v1/documents", files=files)
                    assert took.status_code == 202, took.text
                    sent[took.json()["documents"][0]["id"]] = f"inn-{kill}-{number}.md"
            await asyncio.sleep(0.5 * chance.random())
            await asyncio.to_thread(process.stop, signal.SIGKILL)
            await asyncio.to_thread(process.start)
        async with httpx.AsyncClient(base_url=process.url, headers=bearer(process.token), timeout=30) as client:
            async with asyncio.timeout(120):
                while True:
                    listed = (await client.get("/v1/documents?limit=1000")).json()["documents"]
                    if all(one["state"] not in {"queued", "parsing"} for one in listed):
                        break
                    await asyncio.sleep(0.2)
            assert {one["id"]: one["name"] for one in listed} == sent
            assert {(one["state"], one["passages"]) for one in listed} == {("indexed", 1)}, listed
            held = (await client.get("/v1/corpora/films/documents?limit=1000")).json()["documents"]
            assert sorted(one["file"] for one in held if one["file"].startswith("inn-")) == sorted(sent.values())


async def test_a_temporary_index_failure_loses_no_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_PAUSES_SECONDS", (0.1, 0.1))
    async with serving(tmp_path) as (service, key):
        write, failures = words._write, [CorpusError("The lexical index does not answer.")]

        def failing(*given: Any) -> None:
            if failures:
                raise failures.pop()
            write(*given)

        monkeypatch.setattr(words, "_write", failing)
        sent = await service.client.post("/v1/documents", files=[("files", ("tunnel.md", TUNNEL))], headers=key)
        (accepted,) = sent.json()["documents"]
        reported = await final_status(service, key, accepted["id"])
        assert (reported["state"], reported["passages"]) == ("indexed", 1), reported
        assert failures == []
        found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "Ines Karstad" in found.found[0].passage.text


async def sent(service: Running, key: dict[str, str], **files: bytes) -> list[str]:
    """Upload Markdown files in one request; returns their ids."""
    parts = [("files", (f"{name}.md", content)) for name, content in files.items()]
    taken = await service.client.post("/v1/documents", files=parts, headers=key)
    assert taken.status_code == 202, taken.text
    return [one["id"] for one in taken.json()["documents"]]


async def held_by(service: Running) -> list[str]:
    """The files of the uploaded documents in the corpus."""
    listed = (await service.client.get("/v1/corpora/films/documents")).json()["documents"]
    return [one["file"] for one in listed if one["file"].endswith(".md")]


async def test_a_copy_takes_over_from_the_document_replaced_with_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        (old,) = await sent(service, key, x=TUNNEL)
        assert (await final_status(service, key, old))["passages"] == 1
        for id_ in await sent(service, key, x=BRIDGE, y=TUNNEL):
            assert (await final_status(service, key, id_))["passages"] == 1
        assert sorted(await held_by(service)) == ["x.md", "y.md"]
        found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "Ines Karstad" in found.found[0].passage.text


@pytest.mark.parametrize(("times", "kept"), [(1, 1), (9, 2)])
async def test_an_upload_is_indexed_even_if_its_earlier_version_cannot_be_removed(
    times: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_PAUSES_SECONDS", (0.1, 0.1))
    async with serving(tmp_path) as (service, key):
        (old,) = await sent(service, key, x=TUNNEL)
        await final_status(service, key, old)
        remove, failures = CorpusEditor.remove, [CorpusError("The index does not answer.")] * times

        async def failing(*given: Any) -> None:
            if failures:
                raise failures.pop()
            await remove(*given)

        monkeypatch.setattr(CorpusEditor, "remove", failing)
        (new,) = await sent(service, key, x=BRIDGE)
        reported = await final_status(service, key, new)
        assert (reported["state"], reported["passages"]) == ("indexed", 1), reported
        assert len(await held_by(service)) == kept


async def test_documents_can_be_deleted_while_an_upload_waits_for_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (service, key):
        (old,) = await sent(service, key, x=TUNNEL)
        await final_status(service, key, old)
        write, failed = words._write, asyncio.Event()

        def failing(*given: Any) -> None:
            if not failed.is_set():
                loop.call_soon_threadsafe(failed.set)
                raise CorpusError("The lexical index does not answer.")
            write(*given)

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(uploads, "_PAUSES_SECONDS", (60.0,))
        monkeypatch.setattr(words, "_write", failing)
        (waiting,) = await sent(service, key, y=BRIDGE)
        async with asyncio.timeout(30):
            await failed.wait()
        gone = await service.client.delete(f"/v1/documents/{old}", headers=key)
        assert (gone.status_code, gone.json()["state"]) == (200, "deleted"), gone.text
        reported = (await service.client.get(f"/v1/documents/{waiting}", headers=key)).json()
        assert reported["state"] == "queued"
        gone = await service.client.delete(f"/v1/documents/{waiting}", headers=key)
        assert gone.json()["state"] == "deleted"
        assert await held_by(service) == [], "what the failed attempt left is removed"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a file that was cut off
async def test_rejected_uploads_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, "INGEST_FILE_MB=0.01") as (service, key):
        small = {"files": ("a.txt", b"A text.")}

        async def refused(path: str = "/v1/documents", **sent: Any) -> tuple[int, str]:
            response = await service.client.post(path, headers={**key, **sent.pop("headers", {})}, **sent)
            return response.status_code, code_of(response)

        assert await refused(files={"files": ("a.txt", b"x" * 20_000)}) == (413, "too_large")
        unannounced = {"content-type": "multipart/form-data; boundary=b"}
        assert await refused(content=_endless(), headers=unannounced) == (413, "too_large")
        assert await refused(files={"files": ("a.exe", b"MZ")}) == (415, "unsupported_type")
        assert await refused(json={"files": "a"}) == (415, "unsupported_type")
        assert await refused(files={"other": ("a.txt", b"A text.")}) == (422, "invalid_request")
        assert await refused(files=small, data={"corpus": "films"}) == (422, "invalid_request")
        assert await refused(content=b"--b--\r\n", headers=unannounced) == (422, "invalid_request")
        assert await refused(content=b"no such thing", headers=unannounced) == (422, "invalid_request")
        cut = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nA te'
        assert await refused(content=cut, headers=unannounced) == (422, "invalid_request")
        assert await refused(files=[("files", ("a.txt", b"A"))] * 21) == (422, "invalid_request")
        assert await refused("/v1/documents?corpus=../secrets", files=small) == (404, "unknown_corpus")
        assert await refused("/v1/documents?corpus=shelf", files=small) == (409, "read_only")
        assert await refused(files=small, headers=bearer(service.token)) == (403, "forbidden")
        assert not files_of(service)
    monkeypatch.setattr(uploads, "UPLOAD_SECONDS", 0.2)
    async with serving(tmp_path) as (service, key):
        assert await refused(content=_endless(0.3), headers=unannounced) == (408, "upload_too_slow")
        assert not files_of(service)


async def _endless(pause: float = 0.0) -> AsyncIterator[bytes]:
    yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    while True:
        await asyncio.sleep(pause)
        yield b"x" * 100


def test_file_names_are_always_sanitised() -> None:
    assert [safe_name(given) for given, _ in KEPT] == [kept for _, kept in KEPT]
    for given in ("", ".", "..", "a/..", "\x00", "x" * 500 + ".md", "é" * 300 + ".pdf", "a\r\nb.txt", "\u202etxt.exe"):
        name = safe_name(given)
        assert name not in {"", ".", ".."}
        assert not set(name) & set("/\\\x00\r\n\u202e")
        assert len(name.encode()) <= 120
        assert Path(name).name == name
    assert safe_name("x" * 500 + ".md").endswith(".md")
