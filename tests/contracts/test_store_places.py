"""Where stores are kept: in folders opened by one process at a time, or on servers named in the settings."""

from pathlib import Path

import pytest

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores import StorePlace
from tests.stores import EMBEDDED, KNOWN, Stores

ADA = Passage(id="ada", doc_id="d1", title="Ada Lovelace", text="She wrote the first published program.")


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # qdrant-client's lock in local mode
async def test_a_store_in_a_folder_cannot_be_opened_twice(stores: Stores) -> None:
    if not stores.locks:
        pytest.skip("a server is for many")
    async with stores.opened() as store:
        await store.update([ADA])
        with pytest.raises(CorpusError, match="open elsewhere"):
            async with stores.opened():
                pass
        assert [one.passage for one in await store.search(ADA.searchable(), 1)] == [ADA]
    async with stores.opened() as store:
        assert [one.passage for one in await store.search(ADA.searchable(), 1)] == [ADA]


@pytest.mark.parametrize("stores", EMBEDDED, indirect=True)
async def test_unreadable_files_are_reported(stores: Stores) -> None:
    async with stores.opened("one") as store:
        await store.update([ADA])
    stores.used.clear()
    files = [file for file in stores.place().folder.rglob("*") if file.is_file() and "lock" not in file.name]
    for file in files:
        if file.name != "store.json":
            file.write_bytes(b"not this")
    with pytest.raises(CorpusError, match="one"):
        async with stores.opened():
            pass
    for file in files:
        file.write_bytes(b"not this")
    with pytest.raises(CorpusError, match="one"):
        async with stores.opened():
            pass


@pytest.mark.parametrize("stores", EMBEDDED, indirect=True)
async def test_missing_files_are_not_mistaken_for_an_empty_store(stores: Stores) -> None:
    async with stores.opened("one") as store:
        await store.update([ADA])
    stores.used.clear()
    for file in stores.place().folder.rglob("*"):
        if file.is_file() and file.name != "store.json":
            file.unlink()
    for folder in sorted(stores.place().folder.rglob("*"), reverse=True):
        if folder.is_dir():
            folder.rmdir()
    with pytest.raises(CorpusError, match="are missing"):
        async with stores.opened():
            pass


@pytest.mark.parametrize(("name", "setting"), [("qdrant", "QDRANT_URL"), ("elasticsearch", "ELASTICSEARCH_URL")])
@pytest.mark.parametrize("url", [None, "ftp://user:hush@host", "http://host:port"])
async def test_a_server_without_a_usable_url_names_the_setting(
    name: str, setting: str, url: str | None, tmp_path: Path
) -> None:
    place = StorePlace(folder=tmp_path, name="marag-test", url=url)
    drop = KNOWN.dense[name].drop if name in KNOWN.dense else KNOWN.lexical[name].drop
    with pytest.raises(SettingsError, match=setting) as caught:
        await drop(place)
    assert "hush" not in str(caught.value)
