"""Readers of an embedded corpus have their own copies, so that any number can read while one writes."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError
from meta_agent_rag.retrieval.corpus import folder as folders
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.corpus import open_corpus
from meta_agent_rag.retrieval.corpus.editing import edit_corpus, ensure_corpus
from meta_agent_rag.retrieval.corpus.folder import CorpusFolder
from meta_agent_rag.retrieval.corpus.live import edit_live
from meta_agent_rag.retrieval.corpus.reading import _place_of_its_own
from meta_agent_rag.retrieval.passage import Passage

from .test_retrieval_corpus import ENCODER, at, first_title, passages, visible


async def test_a_reader_waits_for_a_short_edit(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none") as editor:
        reader = asyncio.create_task(first_title(tmp_path, "facts", "newer"))
        await asyncio.sleep(0.2)
        more = Passage(id="new", doc_id="new", title="New", text="A newer fact of the matter.")
        await editor.put(DocumentRecord(id="new", source="n", title="New", kind="t", content_hash="1"), [more])
    assert await reader == "New"


async def test_many_readers_can_read_during_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_PATIENCE_SECONDS", 0.1)
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with (
        open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus,
        open_corpus(at(tmp_path), "facts", "hash-64", 64) as other,
    ):
        async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none") as editor:
            with pytest.raises(CorpusError, match="'facts' is being built or changed elsewhere"):
                await first_title(tmp_path, "facts", "fact")
            with pytest.raises(CorpusError, match="being built or changed"):
                await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER, replace=True)
            await editor.remove(["facts"])
            more = Passage(id="new", doc_id="new", title="New", text="A newer fact of the matter.")
            await editor.put(DocumentRecord(id="new", source="n", title="New", kind="t", content_hash="1"), [more])
        for reader in (corpus, other):
            assert len(await reader.lexical.search("fact", 9)) == 3, "a reader sees the corpus as it was opened"
            assert len([passage async for passage in reader.dense.scan()]) == 3
            with pytest.raises(CorpusError, match="is read-only"):
                await reader.lexical.update([more])
        assert await first_title(tmp_path, "facts", "fact") == "New"
    assert visible(tmp_path) == ["facts"]


async def test_an_edit_of_an_open_corpus_is_visible_to_its_reader(tmp_path: Path) -> None:
    await ensure_corpus(at(tmp_path), "facts", passages(), ENCODER)
    async with open_corpus(at(tmp_path), "facts", "hash-64", 64) as corpus:
        scan = corpus.dense.scan()
        await anext(scan)
        async with edit_live(at(tmp_path), corpus, ENCODER, chunker="none") as editor:
            await editor.remove(["facts"])
            more = Passage(id="new", doc_id="new", title="New", text="A newer fact of the matter.")
            await editor.put(DocumentRecord(id="new", source="n", title="New", kind="t", content_hash="1"), [more])
        assert [one.passage.id for one in await corpus.lexical.search("fact", 9)] == ["new"]
        assert [passage.id async for passage in corpus.dense.scan()] == ["new"]
        assert len([passage async for passage in scan]) == 2, "a search begun earlier continues on the old state"
    assert visible(tmp_path) == ["facts"]


_READER = """
import asyncio, sys
from meta_agent_rag.retrieval.corpus.corpus import open_corpus
from meta_agent_rag.settings import Settings

async def main():
    async with open_corpus(Settings.load(marag_data_dir=sys.argv[1]), "facts", "hash-64", 64) as corpus:
        print(len(await corpus.lexical.search("fact", 9)), flush=True)
        sys.stdin.read()

asyncio.run(main())
"""


def test_concurrent_readers_do_not_take_each_others_copies(tmp_path: Path) -> None:
    folder = CorpusFolder(home=tmp_path, name="facts")

    def comes_and_goes(_: int) -> bool:
        with _place_of_its_own(folder) as place:
            (place / "index").write_text("here")
            return place.with_suffix(".lock").exists() and (place / "index").exists()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(comes_and_goes, range(400)))
    assert list(folder.copies.iterdir()) == []


def test_processes_read_concurrently_and_a_killed_one_leaves_nothing_behind(tmp_path: Path) -> None:
    asyncio.run(ensure_corpus(at(tmp_path), "facts", passages(), ENCODER))

    async def edited() -> None:
        async with edit_corpus(at(tmp_path), "facts", ENCODER, chunker="none") as editor:
            more = Passage(id="new", doc_id="new", title="New", text="A newer fact of the matter.")
            await editor.put(DocumentRecord(id="new", source="n", title="New", kind="t", content_hash="1"), [more])

    command = [sys.executable, "-c", _READER, str(tmp_path)]
    copies = tmp_path / "corpora" / ".facts.copies"
    with ExitStack() as stack:
        readers = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            for _ in range(2)
        ]
        assert [reader.stdout.readline() for reader in readers if reader.stdout] == [b"3\n", b"3\n"]
        asyncio.run(edited())
        readers[0].kill()
        readers[0].communicate()
        assert len(list(copies.glob("*.lock"))) == 2
        assert asyncio.run(first_title(tmp_path, "facts", "newer")) == "New"
        assert len(list(copies.glob("*.lock"))) == 1, "the copy of the killed process is removed"
        readers[1].communicate(b"")
        assert readers[1].returncode == 0
    assert visible(tmp_path) == ["facts"]
