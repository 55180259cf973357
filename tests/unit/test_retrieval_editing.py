"""Edits: each document is complete or absent, and nothing is encoded twice after an interruption."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.errors import CorpusError, InputError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import Catalogue, DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import CorpusFolder, list_corpora, open_corpus, read_documents
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders import Encoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.settings import Settings
from tests.forked import forked_call


class CountingEncoder(HashEncoder):
    """Records what it encodes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        self.seen.extend(texts)
        return super().encode_passages(texts)


def document(id_: str, version: str = "1") -> DocumentRecord:
    return DocumentRecord(
        id=id_, source=f"/{id_}", title=id_, kind="text", content_hash=version, aliases=(f"The {id_}",)
    )


def pages(id_: str, *texts: str) -> list[Passage]:
    return [Passage(id=f"{id_}-{text}", doc_id=id_, title=id_, text=f"{text} of {id_}") for text in texts]


def at(folder: Path) -> Settings:
    return Settings.load(marag_data_dir=folder)


async def put(
    folder: Path,
    encoder: Encoder,
    id_: str,
    passages: list[Passage],
    *,
    fails: bool = False,
    publishes: bool = False,
    **options: Any,
) -> None:
    """Write one document in a separate edit, which can be made to fail at its end."""
    async with edit_corpus(at(folder), "c", AsyncEncoder(encoder), **{"chunker": "x", **options}) as editor:
        await editor.put(document(id_), passages)
        if publishes:
            await editor.publish()
        if fails:
            raise KeyError


async def texts(folder: Path, query: str) -> set[str]:
    async with open_corpus(at(folder), "c", "hash-64", 64) as corpus:
        found = {one.passage.text for one in await (await corpus.view()).matching(query, 99)}
        vector = (await AsyncEncoder(HashEncoder()).queries([query]))[0]
        dense = {one.passage.text for one in await (await corpus.view()).nearest(vector, 99)}
        assert found <= dense
        return found


async def test_documents_are_added_changed_and_removed(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(encoder), chunker="x") as editor:
        await editor.put(document("a"), pages("a", "one", "two"))
        await editor.put(document("b"), pages("b", "one"))
    assert [(one.id, one.passages) for one in read_documents(tmp_path, "c")] == [("a", 2), ("b", 1)]
    encoder.seen.clear()
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(encoder), chunker="x") as editor:
        assert editor.taken("a", [*pages("a", "one"), *pages("nobody", "one")]) is None
        assert editor.taken("a", [*pages("a", "one"), *pages("b", "one")]) == ("b-one", "b")
        await editor.put(document("a", "2"), pages("a", "two", "three"))
        await editor.remove(["b", "unknown"])
    assert len(encoder.seen) == 1, "an unchanged passage of a changed document keeps its vector"
    assert await texts(tmp_path, "a b one two three") == {"two of a", "three of a"}
    (manifest,) = list_corpora(tmp_path)
    assert (manifest.documents, manifest.passages) == (1, 2)


@pytest.mark.parametrize("twice", [pages("a", "one"), [*pages("b", "one"), *pages("b", "one")]])
async def test_a_passage_belongs_to_one_document(tmp_path: Path, twice: list[Passage]) -> None:
    await put(tmp_path, HashEncoder(), "a", pages("a", "one"))
    with pytest.raises(InputError, match=r"Two passages have the id '[ab]-one'"):
        await put(tmp_path, HashEncoder(), "b", twice)
    assert await texts(tmp_path, "one") == {"one of a"}


async def test_an_interrupted_edit_resumes_without_encoding_twice(tmp_path: Path) -> None:
    encoder = CountingEncoder()

    def stop(done: int, wanted: int) -> None:
        if done >= 512:
            raise asyncio.CancelledError

    many = pages("a", *(f"n{number}" for number in range(1500)))
    with pytest.raises(asyncio.CancelledError):
        await put(tmp_path, encoder, "a", many, on_progress=stop)
    assert len(encoder.seen) == 512
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(encoder), chunker="x") as editor:
        await editor.put(document("a"), many)
    assert len(encoder.seen) == len(set(encoder.seen)) == 1500
    assert list_corpora(tmp_path)[0].passages == 1500


async def test_a_different_encoder_or_chunker_requires_a_rebuild(tmp_path: Path) -> None:
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(HashEncoder()), chunker="x") as editor:
        await editor.put(document("a"), pages("a", "one"))
    for encoder, chunker in ((HashEncoder(32), "x"), (HashEncoder(), "y")):
        again = "ENCODER=hash-64" if encoder.name != "hash-64" else "the chunker"
        with pytest.raises(CorpusError, match=rf"set {again} again, or .*marag ingest PATH... --corpus c --rebuild"):
            async with edit_corpus(at(tmp_path), "c", AsyncEncoder(encoder), chunker=chunker):
                pass
    with pytest.raises(KeyError):
        await put(
            tmp_path, HashEncoder(), "b", pages("b", "one"), fails=True, publishes=True, chunker="y", rebuild=True
        )
    assert await texts(tmp_path, "one") == {"one of a"}, "the earlier corpus is kept until the new one is complete"
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(HashEncoder()), chunker="y", rebuild=True) as editor:
        await editor.put(document("b"), pages("b", "one"))
    assert await texts(tmp_path, "one") == {"one of b"}
    assert list_corpora(tmp_path)[0].chunker == "y"


def killed_at(step: str, folder: Path) -> None:
    """Edit two documents and die at the start of a step."""

    def dying(*_: Any) -> Any:
        os._exit(9)

    owner: Any = CorpusFolder if step == "write" else Catalogue
    setattr(owner, step, dying)
    asyncio.run(edit_two(folder))


async def edit_two(folder: Path) -> None:
    async with edit_corpus(at(folder), "c", AsyncEncoder(HashEncoder()), chunker="x") as editor:
        for id_ in ("a", "b"):
            await editor.put(document(id_, "2"), pages(id_, "two", "new"))


OLD = {"one of a", "two of a"}
NEW = {"two of a", "new of a", "two of b", "new of b"}


@pytest.mark.slow
@pytest.mark.parametrize(("die_at", "left"), [("add_vectors", OLD), ("replace", OLD), ("parts", NEW), ("write", NEW)])
async def test_a_kill_leaves_every_document_complete(die_at: str, left: set[str], tmp_path: Path) -> None:
    async with edit_corpus(at(tmp_path), "c", AsyncEncoder(HashEncoder()), chunker="x") as editor:
        await editor.put(document("a"), pages("a", "one", "two"))
    child = forked_call(killed_at, die_at, tmp_path, folder=tmp_path)
    assert await asyncio.to_thread(child.ended) == 9, child.err.read_text()
    assert await texts(tmp_path, "one two new") == left
    (manifest,) = list_corpora(tmp_path)
    assert manifest.passages == len(left)
    await edit_two(tmp_path)
    assert await texts(tmp_path, "one two new") == NEW
