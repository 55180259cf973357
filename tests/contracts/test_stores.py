"""The contract of every store.

The embedded engines run for real, `qdrant` and `elasticsearch` through their clients against servers that speak their
REST APIs, or against real servers (see the fixture `stores`).
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores.store import Hit, StorePlace, best
from tests.stores import DENSE, EMBEDDED, ENCODER, LEXICAL, Stores

ADA = Passage(id="ada", doc_id="d1", title="Ada Lovelace", text="She wrote the first published program.")
BABBAGE = Passage(id="babbage", doc_id="d1", title="Charles Babbage", text="He designed the analytical engine.")
HOPPER = Passage(id="hopper", doc_id="d2", title="", text="Grace Hopper wrote a compiler in 1952.")
THREE = {1: ADA, 2: BABBAGE, 5: HOPPER}

ODD_TEXTS = (
    "", " \t\n", "?!... --- ()[]{}", '"', "it's \"quoted", "AND OR NOT", "title:ada AND (text:", "+-*~^/\\", "a\0b",
    "\0", "program " * 20_000, " ".join(f"word{number}" for number in range(5_000)), "東京 café naïve 🦆",
    "東京" * 2_000, "\ud800", "%s {0}", "x" * 40_000, "the who " * 2_000,
)  # fmt: skip
MANY = 600
"""More than one batch of any store."""


def rows(hits: Sequence[Hit]) -> list[int]:
    return [hit.row for hit in hits]


def edition(name: str, first: int, count: int = MANY) -> dict[int, Passage]:
    texts = {first + n: f"The {name} edition." for n in range(count)}
    return {row: Passage(id=f"{row}", doc_id="book", title=f"Page {row}", text=text) for row, text in texts.items()}


async def test_any_store_searches_title_and_text(stores: Stores) -> None:
    await stores.publish(THREE)
    async with stores.opened() as search:
        by_title = await search("Ada Lovelace", 3)
        assert by_title[0].row == 1
        assert (await search("analytical engine", 3))[0].row == 2
        scores = [hit.score for hit in by_title]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 0


async def test_any_store_returns_at_most_k(stores: Stores) -> None:
    await stores.publish(THREE)
    async with stores.opened() as search:
        assert len(await search("wrote", 1)) == 1
        assert await search("wrote", 0) == await search("wrote", -1) == []
        assert len(await search("wrote", 10_000)) <= 3


async def test_any_store_may_be_empty(stores: Stores) -> None:
    await stores.publish({})
    async with stores.opened() as search:
        assert await search("wrote", 5) == []


async def test_any_store_publishes_changes_again_and_again(stores: Stores) -> None:
    await stores.publish(edition("first", 1))
    await stores.publish(edition("second", 1001), removed=range(1, MANY))
    for _ in range(2):  # the second time is a repetition, as after a kill
        async with stores.opened() as search:
            found = await search("edition", 2 * MANY)
            assert sorted(rows(found)) == [MANY, *range(1001, 1001 + MANY)]
        if stores.name not in EMBEDDED:
            await stores.apply(edition("second", 1001), range(1, MANY), "one")
    await stores.publish({}, removed=[MANY, 77_777])
    async with stores.opened() as search:
        assert MANY not in rows(await search("edition", 2 * MANY))


@pytest.mark.parametrize("stores", EMBEDDED, indirect=True)
async def test_an_embedded_store_keeps_its_state_while_others_are_published(stores: Stores) -> None:
    await stores.publish(edition("first", 1))
    async with stores.opened() as before:
        files = {file: file.stat().st_mtime_ns for file in stores.place().folder.rglob("*") if file.suffix != ".lock"}
        await stores.publish(edition("second", 1001), removed=range(1, MANY + 1))
        await stores.publish({}, removed=range(1001, 1001 + MANY))
        assert files == {file: file.stat().st_mtime_ns for file in files}
        assert sorted(rows(await before("edition", 2 * MANY))) == list(range(1, MANY + 1))


async def test_any_store_restricts_a_search_to_given_rows(stores: Stores) -> None:
    await stores.publish(THREE)
    async with stores.opened() as search:
        unbounded = {hit.row: hit.score for hit in await search("wrote", 10)}
        found = await search("wrote", 10, among=[5, 4711])
        assert rows(found) == [5]
        assert found[0].score == pytest.approx(unbounded[5], abs=2e-5)
        assert await search("wrote", 10, among=[]) == []
        assert len(await search("wrote", 1, among=[1, 5])) == 1
        assert rows(await search("wrote", 10, among=[1, *range(6, 3_000)])) == [1]


async def test_any_store_can_be_closed_after_a_cancelled_search(stores: Stores) -> None:
    await stores.publish(THREE)
    async with stores.opened() as search:
        searches = [asyncio.create_task(search("wrote", 3)) for _ in range(5)]
        await asyncio.sleep(0)
        for one in searches:
            one.cancel()
        outcomes = await asyncio.gather(*searches, return_exceptions=True)
    assert all(isinstance(outcome, list | asyncio.CancelledError) for outcome in outcomes)
    async with stores.opened() as search:
        assert rows(await search("compiler", 1)) == [5]


async def test_any_store_accepts_any_text(stores: Stores) -> None:
    odd = {
        row: Passage(id=f"{row}", doc_id="d3", title=text[:1000], text=text) for row, text in enumerate(ODD_TEXTS, 9)
    }
    await stores.publish({**THREE, **odd})
    async with stores.opened() as search:
        for text in ODD_TEXTS:
            assert {hit.row for hit in await search(text, 10)} <= {*THREE, *odd}


async def test_any_store_orders_ties_by_row_even_when_k_cuts_them(stores: Stores) -> None:
    twins = {n: Passage(id=f"twin-{n}", doc_id="d", title="Twin", text="Same text.") for n in range(1, 151)}
    await stores.publish(dict(list(twins.items())[:70]))
    await stores.publish(dict(list(twins.items())[70:]))
    async with stores.opened() as search:
        assert rows(await search("same twin text", 5)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("stores", ["qdrant", "elasticsearch"], indirect=True)
async def test_any_store_can_be_dropped_without_affecting_its_neighbour(stores: Stores) -> None:
    for label in ("one", "other"):
        await stores.publish(THREE, label=label)
    await stores.drop("one")
    await stores.drop("one")
    await stores.drop("never there")
    async with stores.opened("other") as search:
        assert rows(await search("compiler", 1)) == [5]
    with pytest.raises(CorpusError, match="is missing on its server"):
        async with stores.opened("one"):
            pass


@pytest.mark.parametrize("stores", LEXICAL, indirect=True)
@pytest.mark.parametrize("text", ["", "?!...", "\0", "AND OR NOT"])
async def test_any_store_finds_nothing_for_a_query_without_words(stores: Stores, text: str) -> None:
    await stores.publish(THREE)
    async with stores.opened() as search:
        assert await search(text, 10) == []


@pytest.mark.parametrize("stores", LEXICAL, indirect=True)
async def test_any_store_of_words_finds_names_in_scripts_without_blanks(stores: Stores) -> None:
    castle = Passage(id="castle", doc_id="d", title="大阪城", text="大阪城は豊臣秀吉が築いた城である。")
    await stores.publish({**THREE, 7: castle})
    async with stores.opened() as search:
        assert rows(await search("豊臣秀吉", 1)) == [7]


@pytest.mark.parametrize("stores", LEXICAL, indirect=True)
async def test_any_store_of_words_applies_stemming_and_ignores_function_words(stores: Stores) -> None:
    await stores.publish({**THREE, 7: Passage(id="band", doc_id="d", title="The Who", text="They are a band.")})
    async with stores.opened() as search:
        assert rows(await search("Who was designing ENGINES?", 10)) == [2]
        assert rows(await search("The Who", 1)) == [7], "a query of function words alone is searched verbatim"


async def test_both_lexical_stores_agree_on_scores(tmp_path: Path, elasticsearch_url: str) -> None:
    """The blend and its floor expect scores on one scale: BM25 times k1 + 1.

    Every passage here has a title, since Elasticsearch's average field length skips passages without one.
    """
    titled = {1: ADA, 2: BABBAGE, 5: Passage(id="hopper", doc_id="d", title="Grace Hopper", text=HOPPER.text)}
    found = []
    for name, url in (("tantivy", None), ("elasticsearch", elasticsearch_url)):
        (tmp_path / name).mkdir()
        stores = Stores(name=name, folder=tmp_path / name, url=url, prefix="marag-test-scores")
        await stores.publish(titled)
        async with stores.opened() as search:
            found.append(await search("Ada Lovelace wrote", 3))
        await stores.drop_all()
    assert rows(found[0]) == rows(found[1]) == [1, 5]
    assert [hit.score for hit in found[0]] == pytest.approx([hit.score for hit in found[1]], rel=0.02)


@pytest.mark.parametrize("stores", DENSE, indirect=True)
async def test_any_store_of_vectors_returns_cosine_scores(stores: Stores) -> None:
    await stores.publish(THREE)
    async with stores.store() as store:
        await store.open()
        alike, *_ = await store.search(ENCODER.encode_queries([ADA.searchable()])[0], 1)
        nothing = await store.search(np.zeros(128, dtype=np.float32), 3)
        with pytest.raises(ValueError, match="shape"):
            await store.search(np.zeros(3, dtype=np.float32), 1)
    assert alike.row == 1
    assert alike.score == pytest.approx(1.0, abs=1e-4)
    assert [hit.score for hit in nothing] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("stores", EMBEDDED, indirect=True)
async def test_missing_files_are_not_mistaken_for_an_empty_store(stores: Stores) -> None:
    stores.states["one"] = 1
    with pytest.raises(CorpusError, match="cannot be read"):
        async with stores.opened():
            pass


@pytest.mark.parametrize(("name", "setting"), [("qdrant", "QDRANT_URL"), ("elasticsearch", "ELASTICSEARCH_URL")])
@pytest.mark.parametrize("url", [None, "ftp://user:hush@host", "http://host:port"])
def test_a_server_without_a_usable_url_names_the_setting(
    name: str, setting: str, url: str | None, tmp_path: Path
) -> None:
    place = StorePlace(folder=tmp_path, name="marag-test", dimension=3, url=url)
    with pytest.raises(SettingsError, match=setting) as caught:
        {**DENSE, **LEXICAL}[name](place)
    assert "hush" not in str(caught.value)


async def test_the_best_are_certain_although_an_engine_gives_ties_in_any_order() -> None:
    hits = [Hit(1.0, 500), *(Hit(0.5, row) for row in range(300, 0, -1)), Hit(0.1, 0)]

    async def fetch(limit: int) -> list[Hit]:
        return hits[:limit]

    assert rows(await best(fetch, 4)) == [500, 1, 2, 3]
    assert len(await best(fetch, 1000)) == 302
    assert await best(fetch, 0) == []
