"""The contract of every discovered store.

The embedded engines run for real, `qdrant` in its client's local mode, and `elasticsearch` through its
client against a server that speaks its REST API. `tests/integration/test_server_stores.py` runs the
tests that are called `test_any_store_...` again, against real servers.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.discovery import by_name
from meta_agent_rag.errors import CorpusError, DuplicateNameError
from meta_agent_rag.retrieval.passage import Found, Passage
from tests.stores import EMBEDDED, KNOWN, NAMES, STRANGERS, Handle, Stores

ADA = Passage(
    id="ada", doc_id="d1", title="Ada Lovelace", text="She wrote the first published program.",
    section="Life", start_page=1, end_page=2, start_sentence=0, end_sentence=3, span=(10, 48),
    page_breaks=((10, 2),),
)  # fmt: skip
BABBAGE = Passage(id="babbage", doc_id="d1", title="Charles Babbage", text="He designed the analytical engine.")
HOPPER = Passage(id="hopper", doc_id="d2", title="", text="Grace Hopper wrote a compiler in 1952.")
THREE = (ADA, BABBAGE, HOPPER)

ODD_TEXTS = (
    "", " \t\n", "?!... --- ()[]{}", '"', "it's \"quoted", "AND OR NOT", "title:ada AND (text:", "+-*~^/\\", "a\0b",
    "\0", "program " * 20_000, " ".join(f"word{number}" for number in range(5_000)), "東京 café naïve 🦆",
    "東京" * 2_000, "\ud800", "%s {0}", "x" * 40_000, "the who " * 2_000,
)  # fmt: skip
ODD_IDS = (
    "", " ", "a/b?c=d#e", "ünï 東京 🦆", '"quoted\\"', "a\0b", "\ud800", "*", "_all", "word " * 200, "[1]", "ADA",
    "null",
)  # fmt: skip
MANY = 300
"""More than one batch of any store."""


def ids(found: Sequence[Found]) -> list[str]:
    return [one.passage.id for one in found]


async def scanned(store: Handle) -> list[Passage]:
    return sorted([passage async for passage in store.scan()], key=lambda passage: passage.id)


def edition(name: str, count: int = MANY) -> list[Passage]:
    return [Passage(id=f"{n:04}", doc_id="book", title=f"Page {n}", text=f"The {name} edition.") for n in range(count)]


def test_every_kind_of_store_is_discovered() -> None:
    assert set(KNOWN.dense) >= {"qdrant-edge", "qdrant"}
    assert set(KNOWN.lexical) >= {"tantivy", "elasticsearch"}
    assert set(STRANGERS) == set(NAMES), "a new store on a server: describe a third-party one in tests/stores.py"


def test_a_duplicate_name_is_rejected() -> None:
    backend = next(iter(KNOWN.lexical.values()))
    with pytest.raises(DuplicateNameError, match=backend.name):
        by_name([backend, backend], "stores")


async def test_any_store_searches_title_and_text_and_returns_whole_passages(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        by_title = await store.search("Ada Lovelace", 3)
        by_text = await store.search("analytical engine", 3)
    assert by_title[0].passage == ADA
    assert by_text[0].passage == BABBAGE
    scores = [found.score for found in by_title]
    assert scores == sorted(scores, reverse=True)
    assert by_title[0].score > 0


async def test_any_store_returns_only_scores_of_its_own_kind(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        best = (await store.search(ADA.searchable(), 1))[0]
    assert best.score == (best.dense if stores.dense else best.lexical)
    assert (best.lexical if stores.dense else best.dense) is None


async def test_any_store_returns_at_most_k(stores: Stores) -> None:
    async with stores.opened() as store:
        assert await store.search("wrote", 5) == []
        await store.update(THREE)
        assert len(await store.search("wrote", 1)) == 1
        assert await store.search("wrote", 0) == []
        assert await store.search("wrote", -1) == []
        assert len(await store.search("wrote", 10_000)) <= 3


async def test_any_store_replaces_a_passage_with_the_same_id(stores: Stores) -> None:
    newer = replace(ADA, title="Byron", text="A poet from London.")
    newest = replace(ADA, title="Zebra", text="A striped animal.")
    async with stores.opened() as store:
        await store.update(THREE)
        await store.update([newer, newest])
        found = await store.search("zebra striped animal", 10)
        old = await store.search(ADA.searchable(), 10)
        assert await scanned(store) == [newest, BABBAGE, HOPPER]
    assert found[0].passage == newest
    assert ids(found).count("ada") == 1
    assert ADA not in [one.passage for one in old]
    assert newer not in [one.passage for one in old]


async def test_any_store_no_longer_finds_removed_passages(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        await store.update([], removed=["ada", "ada", "never there"])
        await store.update([])
        assert "ada" not in ids(await store.search(ADA.searchable(), 10))
        assert "babbage" in ids(await store.search(BABBAGE.searchable(), 10))
        assert await scanned(store) == [BABBAGE, HOPPER]


async def test_any_store_removes_and_adds_in_one_update(stores: Stores) -> None:
    newer = replace(BABBAGE, text="He also drew up a difference engine.")
    async with stores.opened() as store:
        await store.update([ADA, BABBAGE])
        await store.update([newer, HOPPER], removed=["ada", "babbage"])
        assert await scanned(store) == [newer, HOPPER]
        assert ids(await store.search("difference engine", 1)) == ["babbage"]


async def test_any_store_restricts_a_search_to_given_ids(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        unbounded = {found.passage.id: found.score for found in await store.search("wrote", 10)}
        found = await store.search("wrote", 10, among=["hopper", "never there"])
        assert ids(found) == ["hopper"]
        assert found[0].score == pytest.approx(unbounded["hopper"], abs=2e-5)
        assert await store.search("wrote", 10, among=[]) == []
        assert len(await store.search("wrote", 1, among={"ada", "hopper"})) == 1
        many = [f"id {number}" for number in range(3_000)]
        assert ids(await store.search("wrote", 10, among=[*many, "ada"])) == ["ada"]


async def test_any_store_can_be_closed_after_a_cancelled_search(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        searches = [asyncio.create_task(store.search("wrote", 3)) for _ in range(5)]
        await asyncio.sleep(0)
        for search in searches:
            search.cancel()
        outcomes = await asyncio.gather(*searches, return_exceptions=True)
    assert all(isinstance(outcome, list | asyncio.CancelledError) for outcome in outcomes)
    async with stores.opened() as store:
        assert ids(await store.search("compiler", 1)) == ["hopper"]


async def test_any_store_scans_every_passage_once(stores: Stores) -> None:
    passages = edition("only", 2_500 if stores.name in EMBEDDED else 1_100)
    async with stores.opened() as store:
        assert await scanned(store) == []
        await store.update(passages)
        assert await scanned(store) == passages


async def test_any_store_persists_after_reopening(stores: Stores) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        await store.update([], removed=["babbage"])
        before = await store.search("wrote program", 10)
    for _ in range(2):
        async with stores.opened() as store:
            after = await store.search("wrote program", 10)
            assert [one.passage for one in after] == [one.passage for one in before]
            await store.update([HOPPER])


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
async def test_any_store_accepts_any_text(stores: Stores, text: str) -> None:
    odd = Passage(id="odd", doc_id="d3", title=text[:1000], text=text)
    async with stores.opened() as store:
        await store.update([*THREE, odd])
        found = await store.search(text, 10)
        assert len(found) <= 4
        assert all(one.passage in (*THREE, odd) for one in found)
        assert odd in await scanned(store)


async def test_any_store_accepts_any_id(stores: Stores) -> None:
    passages = [Passage(id=id_, doc_id=id_, title="Odd", text=f"Number {n}.") for n, id_ in enumerate(ODD_IDS)]
    async with stores.opened() as store:
        await store.update(passages)
        await store.update(passages)
        assert set(ids(await store.search("odd", 100, among=ODD_IDS[:5]))) == set(ODD_IDS[:5])
        assert [passage.id for passage in await scanned(store)] == sorted(ODD_IDS)
        await store.update([], removed=ODD_IDS[1:])
        assert await scanned(store) == passages[:1]


async def test_any_store_orders_ties_by_id_even_when_k_cuts_them(stores: Stores) -> None:
    twins = [Passage(id=f"twin-{number:03}", doc_id="d", title="Twin", text="Same text.") for number in range(150)]
    for order, label in ((twins, "forward"), (twins[::-1], "backward")):
        async with stores.opened(label) as store:
            await store.update(order[:70])
            await store.update(order[70:])
            assert ids(await store.search("same twin text", 5)) == [twin.id for twin in twins[:5]]


async def test_any_store_updates_are_atomic_for_readers(stores: Stores) -> None:
    old, new = edition("first"), edition("second")
    seen = []
    async with stores.opened() as store:
        await store.update(old)
        update = asyncio.create_task(store.update([*new[1:]], removed=["0000"]))
        while not update.done():
            found = await store.search("edition", MANY)
            texts = sorted({one.passage.text for one in found})
            assert (texts, len(found)) in ((["The first edition."], MANY), (["The second edition."], MANY - 1))
            seen.append(texts[0])
            await asyncio.sleep(0)
        await update
        assert await scanned(store) == new[1:]
    assert seen == sorted(seen), "once visible, an update stays visible"


@pytest.mark.parametrize("steps", [1, 4, 11, 40])
async def test_any_store_repairs_an_interrupted_update(stores: Stores, steps: int) -> None:
    old, new = edition("first"), edition("second")
    async with stores.opened() as store:
        await store.update(old)
        update = asyncio.create_task(store.update(new[1:], removed=["0000"]))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        update.cancel()
        await asyncio.gather(update, return_exceptions=True)
        found = await store.search("edition", MANY)
        assert len({one.passage.text for one in found}) == 1
        if steps % 2:
            await store.update(new[1:], removed=["0000"])
            assert len(await store.search("edition", MANY)) == MANY - 1
    async with stores.opened() as store:
        if not steps % 2 and stores.name != "elasticsearch":  # which may show a partial update until the next refresh
            assert await scanned(store) in (old, new[1:])
        await store.update(new[1:], removed=["0000"])
        assert await scanned(store) == new[1:]


async def test_any_store_serialises_concurrent_updates(stores: Stores) -> None:
    passages = edition("only", 40)
    async with stores.opened() as store:
        await asyncio.gather(*(store.update(passages[start : start + 5]) for start in range(0, 40, 5)))
        assert await scanned(store) == passages


async def test_any_store_can_be_dropped_without_affecting_its_neighbour(stores: Stores) -> None:
    for label in ("one", "other"):
        async with stores.opened(label) as store:
            await store.update(THREE)
    await stores.drop("one")
    await stores.drop("one")
    await stores.drop("never there")
    assert not stores.place("one").folder.exists()
    for label, kept in (("one", []), ("other", sorted(THREE, key=lambda passage: passage.id))):
        async with stores.opened(label) as store:
            assert await scanned(store) == kept


async def test_any_store_leaves_foreign_data_untouched(stores: Stores) -> None:
    stranger = stores.stranger("theirs")
    await stranger.arrive()
    place = stores.place("theirs")
    named = str(place.folder) if stores.name in EMBEDDED else place.name
    with pytest.raises(CorpusError, match=named):
        async with stores.opened("theirs"):
            pass
    with pytest.raises(CorpusError, match=named):
        await stores.drop("theirs")
    assert await stranger.is_untouched()
    await stranger.leave()


async def test_any_store_is_closed_when_its_block_raises(stores: Stores) -> None:
    async def fail() -> None:
        async with stores.opened() as store:
            await store.update(THREE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with stores.opened() as store:
        assert ids(await store.search(ADA.searchable(), 1)) == ["ada"]


@pytest.mark.parametrize("stores", KNOWN.lexical, indirect=True)
@pytest.mark.parametrize("text", ["", "?!...", "\0", "AND OR NOT"])
async def test_any_store_finds_nothing_for_a_query_without_words(stores: Stores, text: str) -> None:
    async with stores.opened() as store:
        await store.update(THREE)
        assert await store.search(text, 10) == []


@pytest.mark.parametrize("stores", KNOWN.lexical, indirect=True)
async def test_any_store_of_words_applies_stemming_and_ignores_function_words(stores: Stores) -> None:
    band = Passage(id="band", doc_id="d", title="The Who", text="They are a band.")
    async with stores.opened() as store:
        await store.update([*THREE, band])
        assert ids(await store.search("Who was designing ENGINES?", 10)) == ["babbage"]
        assert ids(await store.search("The Who", 1)) == ["band"], "a query of function words alone is searched verbatim"


async def test_both_lexical_stores_agree_on_scores(tmp_path: Path, elasticsearch_url: str) -> None:
    """The blend and its floor expect scores on one scale: BM25 times k1 + 1.

    Every passage here has a title, since Elasticsearch's average field length skips passages without one.
    """
    titled = [ADA, BABBAGE, replace(HOPPER, title="Grace Hopper")]
    scores = []
    for name, url in (("tantivy", None), ("elasticsearch", elasticsearch_url)):
        stores = Stores(name=name, folder=tmp_path, url=url, prefix="marag-test-scores")
        async with stores.opened() as store:
            await store.update(titled)
            scores.append([(one.passage.id, one.score) for one in await store.search("Ada Lovelace wrote", 3)])
        await stores.drop_all()
    assert [id_ for id_, _ in scores[0]] == [id_ for id_, _ in scores[1]] == ["ada", "hopper"]
    assert [score for _, score in scores[0]] == pytest.approx([score for _, score in scores[1]], rel=0.02)


@pytest.mark.parametrize("stores", KNOWN.dense, indirect=True)
async def test_any_store_of_vectors_returns_cosine_scores(stores: Stores) -> None:
    passages = [Passage(id=letter, doc_id="d", title="", text=letter) for letter in "abc"]
    vectors = np.array([[1, 0], [0.6, 0.8], [-1, 0]], dtype=np.float32)
    stores.used.append("one")
    async with KNOWN.dense[stores.name].open(stores.place(), 2) as store:
        await store.update(passages, vectors)
        found = await store.search(vectors[0], 3)
        nothing = await store.search(np.zeros(2, dtype=np.float32), 3)
    assert [one.dense for one in found] == pytest.approx([1.0, 0.6, -1.0])
    assert [one.dense for one in nothing] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("stores", KNOWN.dense, indirect=True)
async def test_any_store_of_vectors_rejects_a_different_dimension(stores: Stores) -> None:
    stores.used.append("one")
    async with KNOWN.dense[stores.name].open(stores.place(), 2) as store:
        with pytest.raises(ValueError, match="shape"):
            await store.update(THREE, np.zeros((2, 2), dtype=np.float32))
        with pytest.raises(ValueError, match="shape"):
            await store.search(np.zeros(3, dtype=np.float32), 1)
        await store.update([], np.zeros((0, 2), dtype=np.float32))
    with pytest.raises(CorpusError, match="a different length"):
        async with KNOWN.dense[stores.name].open(stores.place(), 3):
            pass
