"""The response cache: equal requests share a reply, unequal ones never do."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from meta_agent_rag.errors import SettingsError, StorageError
from meta_agent_rag.llm.cache import ResponseCache, request_key
from meta_agent_rag.llm.messages import Message, Reply, Request, Usage

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
ENDPOINT = "http://127.0.0.1:1/v1"
REQUEST = Request(
    stage="write",
    model="m",
    messages=(Message(role="system", content="s"), Message(role="user", content="u")),
    max_tokens=100,
    temperature=0.0,
    json_schema={"type": "object", "properties": {"b": {}, "a": {}}},
    extra_body={"thinking": {"type": "disabled"}},
)


def kept(cache: ResponseCache, key: str) -> Reply | None:
    found = cache.get(key)
    assert found is None or found.at == NOW
    return None if found is None else found.reply


OTHER: dict[str, list[Any]] = {
    "draw": [1, 2],
    "logprobs": [True],
    "stop": [("\n",), ("a", "b")],
    "stage": ["rewrite"],
    "model": ["m2", ""],
    "messages": [
        (),
        REQUEST.messages[::-1],
        (Message(role="system", content="s"), Message(role="user", content="u ")),
        (Message(role="system", content="su"), Message(role="user", content="")),
    ],
    "max_tokens": [101],
    "temperature": [None, 0.1],
    "json_schema": [None, {"type": "object"}],
    "extra_body": [{}, {"thinking": {"type": "enabled"}}],
}
REPLY = Reply(
    text="日本 🎉 \u2028", usage=Usage(prompt=9, cache_hit=3, completion=2, reasoning=1), finish_reason="stop"
)


def test_every_changed_field_and_the_endpoint_change_the_key() -> None:
    changed = [replace(REQUEST, **{name: value}) for name, values in OTHER.items() for value in values]
    keys = [request_key(ENDPOINT, request) for request in (REQUEST, *changed)]
    keys.append(request_key("http://127.0.0.1:2/v1", REQUEST))
    assert len(set(keys)) == len(keys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "responses.sqlite"


@pytest.mark.parametrize(
    "reply", [REPLY, replace(REPLY, usage=None, finish_reason=None), Reply(text="", usage=Usage())]
)
def test_a_reply_survives_the_process(path: Path, reply: Reply) -> None:
    cache = ResponseCache(path)
    assert cache.get("k") is None
    cache.put("k", reply, NOW)
    cache.close()
    again = ResponseCache(path)
    assert kept(again, "k") == reply
    assert again.get("K") is None
    again.close()


def test_a_file_that_is_not_a_cache_is_reported_with_a_remedy(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"certainly not a database, and long enough to be looked at" * 100)
    with pytest.raises(
        SettingsError, match=r"responses\.sqlite' cannot be used \(.*\); set MARAG_DATA_DIR .* RESPONSE_CACHE=false\."
    ):
        ResponseCache(path)
    assert path.read_bytes().startswith(b"certainly")


def test_a_full_disk_stops_a_run_and_keeps_stored_replies(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def small(*given: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **options)
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    cache = ResponseCache(path)
    cache.put("kept", REPLY, NOW)
    with pytest.raises(StorageError, match=r"cannot be written .*full.*free disk space"):
        cache.put("large", replace(REPLY, text="x" * 200_000), NOW)
    assert kept(cache, "kept") == REPLY
    cache.close()


def test_processes_that_create_it_together_wait_for_each_other(tmp_path: Path) -> None:
    def stored(path: Path, at_once: Barrier, name: str) -> None:
        at_once.wait()
        with closing(ResponseCache(path)) as cache:
            cache.put(name, REPLY, NOW)

    for attempt in range(10):
        path = tmp_path / f"{attempt}.sqlite"
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(partial(stored, path, Barrier(6)), "abcdef"))
        with closing(ResponseCache(path)) as cache:
            assert all(kept(cache, name) == REPLY for name in "abcdef")
