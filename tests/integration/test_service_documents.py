"""Uploads into a corpus in use, across restarts, and rejected uploads."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import CorpusError
from meta_agent_rag.ingestion.chunkers import prepared
from meta_agent_rag.ingestion.pipeline import chunking_options
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.opening import open_retriever
from meta_agent_rag.retrieval.stores.tantivy_store import TantivyStore
from meta_agent_rag.service.metrics import Metrics
from meta_agent_rag.service.uploads import intake
from meta_agent_rag.service.uploads.intake import Intake, open_intake
from meta_agent_rag.service.uploads.receiving import safe_name
from meta_agent_rag.service.uploads.records import State, Upload, UploadFolder
from tests.loop import BIRTH, FILM, settings_in
from tests.service import Running, bearer, code_of, running

TUNNEL = b"# The Ridge Tunnel\n\nThe Ridge Tunnel was dug in 1871 by Ines Karstad and forty men.\n"
KEPT = ("../../etc/passwd.txt", "passwd.txt"), ("/abs/plan.md", "plan.md"), ("C:\\a\\b.md", "b.md")


@asynccontextmanager
async def serving(folder: Path, *assignments: str) -> AsyncIterator[tuple[Running, dict[str, str]]]:
    """A service over a corpus of two documents, and the header of a key that may upload."""
    assignments = ("SERVICE_RATE_PER_MINUTE=10000", *assignments)
    settings, encoder = settings_in(folder, *assignments), AsyncEncoder(HashEncoder())
    if not (settings.marag_data_dir / "corpora" / "films").exists():
        chunker = prepared(chunking_options(settings, encoder.name)).name
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
        assert (await service.client.get("/v1/corpora")).json()["corpora"][0]["documents"] == 4, (
            "the document is replaced, but its copy is independent"
        )
        stranger = bearer(await service.token_for("others", "ingest"))
        other = await service.client.get(f"/v1/documents/{tunnel['id']}", headers=stranger)
        assert (other.status_code, code_of(other)) == (404, "not_found")
        data = service.service.settings.marag_data_dir / "uploads"
        assert (data / "films" / "tunnel.md").read_bytes() == changed[0][1][1]
        assert not [*(data / ".waiting").iterdir()]
        assert not [*(data / ".incoming").iterdir()]
        # as left by a process that was killed while parsing
        record = json.loads((data / ".records" / f"{again['id']}.json").read_text())
        late = {**record, "id": "f" * 32, "name": "late.txt", "state": "parsing"}
        (data / ".records" / f"{'f' * 32}.json").write_text(json.dumps(late))
        (data / ".waiting" / ("f" * 32)).mkdir()
        (data / ".waiting" / ("f" * 32) / "late.txt").write_text("The Ferry Inn stands at Lund.")
        metrics = service.service.metrics.text(audit_waiting=0).decode()
        assert 'marag_documents_total{state="indexed"} 3.0' in metrics
    async with serving(tmp_path) as (service, _):
        assert await _until_found(service, "Where does the Ferry Inn stand?", "Lund")


async def test_a_copy_outlives_the_original_document(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        ferry = b"# The Ferry Inn\n\nIt burnt down.\n"
        for name, content in (("one.md", TUNNEL), ("copy.md", TUNNEL), ("one.md", ferry)):
            sent = await service.client.post("/v1/documents", files=[("files", (name, content))], headers=key)
            assert (await final_status(service, key, sent.json()["documents"][0]["id"]))["state"] == "indexed"
        found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "Ines Karstad" in found.found[0].passage.text


async def test_a_document_is_listed_deleted_and_uploaded_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as (service, key):
        client, tunnel = service.client, [("files", ("tunnel.md", TUNNEL))]

        async def sent(name: str, content: bytes) -> str:
            took = await client.post("/v1/documents", files=[("files", (name, content))], headers=key)
            id_ = str(took.json()["documents"][0]["id"])
            assert (await final_status(service, key, id_))["state"] == "indexed"
            return id_

        async def found() -> bool:
            passages = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=5)
            return any("Ines Karstad" in one.passage.text for one in passages.found)

        async def listed() -> list[str]:
            reported = await client.get("/v1/documents", headers=key)
            return [one["id"] for one in reported.json()["documents"]]

        first, copy = await sent(*tunnel[0][1]), await sent("copy.md", TUNNEL)
        assert await listed() == [copy, first]
        assert (await client.get("/v1/documents?limit=1&offset=1", headers=key)).json()["documents"][0]["id"] == first
        stranger = bearer(await service.token_for("others", "ingest"))
        assert (await client.delete(f"/v1/documents/{first}", headers=stranger)).status_code == 404
        assert (await client.delete(f"/v1/documents/{first}")).status_code == 403, "this key may only ask questions"
        for _ in range(2):
            gone = await client.delete(f"/v1/documents/{first}", headers=key)
            assert (gone.status_code, gone.json()["state"]) == (200, "deleted"), gone.text
        assert await found(), "its copy is independent"
        await client.delete(f"/v1/documents/{copy}", headers=key)
        assert (await listed(), await found()) == ([], False)
        assert not [*(service.service.settings.marag_data_dir / "uploads" / "films").glob("*/*")]
        again = await sent("tunnel.md", TUNNEL)
        newer = await sent("tunnel.md", TUNNEL.replace(b"1871", b"1872"))
        await client.delete(f"/v1/documents/{again}", headers=key)
        assert (await listed(), await found()) == ([newer], True), "deleting a replaced upload keeps the newer one"


async def test_a_temporary_index_failure_loses_no_upload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_PAUSES_SECONDS", (0.1, 0.1))
    async with serving(tmp_path) as (service, key):
        update, failures = TantivyStore.update, [CorpusError("The lexical index does not answer.")]

        async def failing(self: Any, *given: Any, **named: Any) -> None:
            if failures:
                raise failures.pop()
            await update(self, *given, **named)

        monkeypatch.setattr(TantivyStore, "update", failing)
        sent = await service.client.post("/v1/documents", files=[("files", ("tunnel.md", TUNNEL))], headers=key)
        (accepted,) = sent.json()["documents"]
        reported = await final_status(service, key, accepted["id"])
        assert (reported["state"], reported["passages"]) == ("indexed", 1), reported
        assert failures == []
        found = await service.service.retrievers["films"].retrieve(["Who dug the Ridge Tunnel?"], k=1)
        assert "Ines Karstad" in found.found[0].passage.text


async def test_a_failing_index_does_not_block_other_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, str]] = []

    async def taking(self: Intake, group: Sequence[Upload]) -> list[Upload]:
        taken.extend((upload.corpus, upload.name) for upload in group)
        if group[0].corpus == "broken":
            raise CorpusError("The lexical index does not answer.")
        return [replace(upload, state="indexed") for upload in group]

    monkeypatch.setattr(intake, "_PAUSES_SECONDS", (0.1, 0.1))
    monkeypatch.setattr(Intake, "_taken", taking)
    folder = UploadFolder(path=settings_in(tmp_path).marag_data_dir / "uploads")
    uploads = [
        Upload(id=f"{number:032x}", client_id="one", corpus=corpus, name=name, at=float(number))
        for number, (corpus, name) in enumerate([("broken", "a.md"), ("broken", "a.md"), ("films", "b.md")])
    ]
    for upload in uploads:
        begun = folder.start()
        (begun / upload.name).write_text("text")
        folder.accept(begun, upload)
    async with open_intake(settings_in(tmp_path), {}, Metrics()) as opened:
        for _ in range(500):
            if _states(opened, uploads) == ["failed", "failed", "indexed"]:
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail(f"{_states(opened, uploads)}")
    assert taken[:2] == [("broken", "a.md"), ("films", "b.md")]
    assert taken.count(("broken", "a.md")) == 6, (
        "three attempts each; the first upload fails before the second is tried"
    )


def _states(of: Intake, uploads: Sequence[Upload]) -> list[State]:
    return [found.state for upload in uploads if (found := of.status(upload.id, "one")) is not None]


async def test_a_document_status_is_kept_for_90_days(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    folder = UploadFolder(path=settings.marag_data_dir / "uploads")
    states: list[tuple[State, int]] = [("indexed", 91), ("failed", 91), ("indexed", 89), ("queued", 91)]
    for number, (state, days) in enumerate(states):
        upload = Upload(id=f"{number:032x}", client_id="one", corpus="films", name="a.md", at=0.0, state=state)
        folder.accept(folder.start(), upload)
        if state != "queued":
            folder.settle(upload)
        then = time.time() - days * 86_400
        os.utime(folder.path / ".records" / f"{upload.id}.json", (then, then))
    async with open_intake(settings, {}, Metrics()) as intake:
        known = [intake.status(f"{number:032x}", "one") for number in range(len(states))]
    assert [upload and upload.state for upload in known] == [None, None, "indexed", "queued"]


async def test_the_coach_keeps_to_the_topics_of_the_corpus(tmp_path: Path) -> None:
    async with serving(tmp_path, "SCOPE_THRESHOLD=0.3") as (service, key):
        asked = {"question": "How is a sourdough bread baked in a wood-fired oven?", "corpus": "films", "mode": "coach"}
        reported = (await service.client.post("/v1/ask", json=asked)).json()
        assert (reported["refused"], reported["stop_reason"], reported["rounds"]) == ("out_of_scope", "out_of_scope", 0)
        assert service.model.requests == []
        files = [("files", ("bread.md", f"# {asked['question']}\n\nSlowly, and with care.\n".encode()))]
        sent = await service.client.post("/v1/documents?corpus=films", files=files, headers=key)
        assert (await final_status(service, key, sent.json()["documents"][0]["id"]))["state"] == "indexed"
        await service.client.post("/v1/ask", json=asked)
        assert [request.stage for request in service.model.requests][:1] == ["coach"], "the topic is now in the corpus"


async def _until_found(service: Running, question: str, word: str) -> bool:
    async with asyncio.timeout(120):
        while True:
            found = await service.service.retrievers["films"].retrieve([question], k=1)
            if word in found.found[0].passage.text:
                return True
            await asyncio.sleep(0.05)


async def test_rejected_uploads_leave_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path, "SERVICE_UPLOAD_MB=0.01") as (service, key):
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
        assert await refused(files=[("files", ("a.txt", b"A"))] * 21) == (413, "too_large")
        assert await refused("/v1/documents?corpus=../secrets", files=small) == (404, "unknown_corpus")
        assert await refused("/v1/documents?corpus=shelf", files=small) == (409, "read_only")
        assert await refused(files=small, headers=bearer(service.token)) == (403, "forbidden")
        intake = service.service.intake
        intake.limits = replace(intake.limits, grace=0.2)
        assert await refused(content=_endless(0.3), headers=unannounced) == (408, "upload_too_slow")
        uploads = service.service.settings.marag_data_dir / "uploads"
        assert not [path for path in uploads.rglob("*") if path.is_file()]


async def _endless(pause: float = 0.0) -> AsyncIterator[bytes]:
    yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    while True:
        await asyncio.sleep(pause)
        yield b"x" * 100


@pytest.mark.parametrize(("given", "kept"), KEPT)
def test_only_the_file_name_of_a_path_is_kept(given: str, kept: str) -> None:
    assert safe_name(given) == kept


def test_file_names_are_always_sanitised() -> None:
    for given in ("", ".", "..", "a/..", "\x00", "x" * 500 + ".md", "é" * 300 + ".pdf", "a\r\nb.txt", "\u202etxt.exe"):
        name = safe_name(given)
        assert name not in {"", ".", ".."}
        assert not set(name) & set("/\\\x00\r\n\u202e")
        assert len(name.encode()) <= 120
        assert Path(name).name == name
    assert safe_name("x" * 500 + ".md").endswith(".md")
