"""What every store promises, for all that are discovered."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from meta_agent_rag.errors import CorpusError, DuplicateNameError
from meta_agent_rag.retrieval.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.retrieval.stores import by_name, discover_stores
from meta_agent_rag.retrieval.stores.protocols import DenseStore, LexicalStore

STORES = discover_stores()
ENCODER = HashEncoder(128)

ADA = Passage(
    id="ada", doc_id="d1", title="Ada Lovelace", text="She wrote the first published program.",
    section="Life", start_page=1, end_page=2, start_sentence=0, end_sentence=3, span=(10, 48),
)  # fmt: skip
BABBAGE = Passage(id="babbage", doc_id="d1", title="Charles Babbage", text="He designed the analytical engine.")
HOPPER = Passage(id="hopper", doc_id="d2", title="", text="Grace Hopper wrote a compiler in 1952.")
THREE = (ADA, BABBAGE, HOPPER)

ODD_TEXTS = (
    "", " \t\n", "?!... --- ()[]{}", '"', "it's \"quoted", "AND OR NOT", "title:ada AND (text:", "+-*~^/\\", "a\0b",
    "\0", "program " * 20_000, " ".join(f"word{number}" for number in range(5_000)), "東京 café naïve 🦆",
    "\ud800", "%s {0}",
)  # fmt: skip


class Handle(Protocol):
    """A store of either kind, with vectors made from the texts where it wants them."""

    async def add(self, passages: Sequence[Passage]) -> None: ...
    async def search(self, text: str, k: int) -> list[Found]: ...
    async def remove(self, ids: Sequence[str]) -> None: ...


class Dense:
    def __init__(self, store: DenseStore) -> None:
        self.store = store
        self.remove = store.remove

    async def add(self, passages: Sequence[Passage]) -> None:
        await self.store.add(passages, ENCODER.encode_passages([passage.searchable() for passage in passages]))

    async def search(self, text: str, k: int) -> list[Found]:
        return await self.store.search(ENCODER.encode_queries([text])[0], k)


class Opener(Protocol):
    def __call__(self, folder: Path) -> AbstractAsyncContextManager[Handle]: ...


def dense_opener(name: str) -> Opener:
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Handle]:
        async with STORES.dense[name].open(folder, ENCODER.dimension) as store:
            yield Dense(store)

    return opened


def lexical_opener(name: str) -> Opener:
    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Handle]:
        async with STORES.lexical[name].open(folder) as store:
            lexical: LexicalStore = store
            yield lexical

    return opened


OPENERS = {name: dense_opener(name) for name in STORES.dense} | {name: lexical_opener(name) for name in STORES.lexical}
each_store = pytest.mark.parametrize("open_store", OPENERS.values(), ids=OPENERS.keys())
each_dense = pytest.mark.parametrize("name", STORES.dense)


def ids(found: Sequence[Found]) -> list[str]:
    return [one.passage.id for one in found]


def test_both_kinds_are_discovered() -> None:
    assert len(STORES.dense) >= 1
    assert len(STORES.lexical) >= 1


def test_a_name_twice_is_refused() -> None:
    backend = next(iter(STORES.lexical.values()))
    with pytest.raises(DuplicateNameError, match=backend.name):
        by_name([backend, backend])


@each_store
async def test_finds_by_title_and_text_and_gives_the_passage_back_whole(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path / "store") as store:
        await store.add(THREE)
        by_title = await store.search("Ada Lovelace", 3)
        by_text = await store.search("analytical engine", 3)
    assert by_title[0].passage == ADA
    assert by_text[0].passage == BABBAGE
    scores = [found.score for found in by_title]
    assert scores == sorted(scores, reverse=True)
    assert by_title[0].score > 0


@each_store
async def test_scores_are_on_the_stores_own_side(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await store.add(THREE)
        best = (await store.search(ADA.searchable(), 1))[0]
    assert best.score == (best.dense if best.lexical is None else best.lexical)
    assert (best.dense is None) != (best.lexical is None)


@each_store
async def test_at_most_k(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        assert await store.search("wrote", 5) == []
        await store.add(THREE)
        assert len(await store.search("wrote", 1)) == 1
        assert await store.search("wrote", 0) == []
        assert len(await store.search("wrote", 10_000)) <= 3


@each_store
async def test_adding_an_id_again_replaces_it(open_store: Opener, tmp_path: Path) -> None:
    newer = replace(ADA, title="Byron", text="A poet from London.")
    newest = replace(ADA, title="Zebra", text="A striped animal.")
    async with open_store(tmp_path) as store:
        await store.add(THREE)
        await store.add([newer, newest])
        found = await store.search("zebra striped animal", 10)
        old = await store.search(ADA.searchable(), 10)
    assert found[0].passage == newest
    assert ids(found).count("ada") == 1
    assert ADA not in [one.passage for one in old]
    assert newer not in [one.passage for one in old]


@each_store
async def test_removes(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await store.add(THREE)
        await store.remove(["ada", "ada", "never there"])
        await store.remove([])
        assert "ada" not in ids(await store.search(ADA.searchable(), 10))
        assert "babbage" in ids(await store.search(BABBAGE.searchable(), 10))


@each_store
async def test_is_there_after_a_reopen(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await store.add(THREE)
        await store.remove(["babbage"])
        before = await store.search("wrote program", 10)
    for _ in range(2):
        async with open_store(tmp_path) as store:
            after = await store.search("wrote program", 10)
            assert [one.passage for one in after] == [one.passage for one in before]
            await store.add([HOPPER])


@each_store
@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
async def test_any_text_is_a_query_and_can_be_stored(open_store: Opener, text: str, tmp_path: Path) -> None:
    odd = Passage(id="odd", doc_id="d3", title=text[:1000], text=text)
    async with open_store(tmp_path) as store:
        await store.add([*THREE, odd])
        found = await store.search(text, 10)
        await store.search(text, 10)
        assert len(found) <= 4
        assert all(one.passage in (*THREE, odd) for one in found)


@pytest.mark.parametrize("name", STORES.lexical)
@pytest.mark.parametrize("text", ["", "?!...", "\0", "AND OR NOT"])
async def test_a_query_without_words_finds_nothing_by_words(name: str, text: str, tmp_path: Path) -> None:
    async with STORES.lexical[name].open(tmp_path) as store:
        await store.add(THREE)
        assert await store.search(text, 10) == []


@pytest.mark.parametrize("name", STORES.lexical)
async def test_words_are_stemmed_and_function_words_ignored(name: str, tmp_path: Path) -> None:
    band = Passage(id="band", doc_id="d", title="The Who", text="They are a band.")
    async with STORES.lexical[name].open(tmp_path) as store:
        await store.add([*THREE, band])
        assert ids(await store.search("Who was designing ENGINES?", 10)) == ["babbage"]
        assert ids(await store.search("The Who", 1)) == ["band"], "a query of function words alone is searched as it is"


@each_store
async def test_a_second_open_is_refused(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        await store.add(THREE)
        with pytest.raises(CorpusError, match="open elsewhere"):
            async with open_store(tmp_path):
                pass
        assert ids(await store.search(ADA.searchable(), 1)) == ["ada"]
    async with open_store(tmp_path) as store:
        assert ids(await store.search(ADA.searchable(), 1)) == ["ada"]


@each_store
async def test_an_error_inside_closes_the_store(open_store: Opener, tmp_path: Path) -> None:
    async def fail() -> None:
        async with open_store(tmp_path) as store:
            await store.add(THREE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with open_store(tmp_path) as store:
        assert ids(await store.search(ADA.searchable(), 1)) == ["ada"]


@each_store
async def test_ties_go_by_passage_id_also_where_k_cuts_them(open_store: Opener, tmp_path: Path) -> None:
    twins = [Passage(id=f"twin-{number:03}", doc_id="d", title="Twin", text="Same text.") for number in range(150)]
    for order, folder in ((twins, "forward"), (twins[::-1], "backward")):
        async with open_store(tmp_path / folder) as store:
            await store.add(order[:70])
            await store.add(order[70:])
            assert ids(await store.search("same twin text", 5)) == [twin.id for twin in twins[:5]]


@each_store
async def test_unreadable_files_are_named(open_store: Opener, tmp_path: Path) -> None:
    async with open_store(tmp_path / "store") as store:
        await store.add(THREE)
    for file in (tmp_path / "store").rglob("*"):
        if file.is_file() and "lock" not in file.name:
            file.write_bytes(b"not this")
    with pytest.raises(CorpusError, match="store"):
        async with open_store(tmp_path / "store"):
            pass


@each_dense
async def test_dense_scores_are_cosines(name: str, tmp_path: Path) -> None:
    passages = [Passage(id=letter, doc_id="d", title="", text=letter) for letter in "abc"]
    vectors = np.array([[1, 0], [0.6, 0.8], [-1, 0]], dtype=np.float32)
    async with STORES.dense[name].open(tmp_path, 2) as store:
        await store.add(passages, vectors)
        found = await store.search(vectors[0], 3)
        nothing = await store.search(np.zeros(2, dtype=np.float32), 3)
    assert [one.dense for one in found] == pytest.approx([1.0, 0.6, -1.0])
    assert [one.dense for one in nothing] == [0.0, 0.0, 0.0]


@each_dense
async def test_vectors_of_another_shape_are_refused(name: str, tmp_path: Path) -> None:
    async with STORES.dense[name].open(tmp_path, 2) as store:
        with pytest.raises(ValueError, match="shape"):
            await store.add(THREE, np.zeros((2, 2), dtype=np.float32))
        with pytest.raises(ValueError, match="shape"):
            await store.search(np.zeros(3, dtype=np.float32), 1)
        await store.add([], np.zeros((0, 2), dtype=np.float32))
    with pytest.raises(CorpusError, match="another length"):
        async with STORES.dense[name].open(tmp_path, 3):
            pass
