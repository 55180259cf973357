"""The stores on servers with a busy, refusing or missing server; replies are scripted over HTTP."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from meta_agent_rag.errors import CorpusError, SettingsError
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.stores.elastic import ElasticsearchStore
from meta_agent_rag.retrieval.stores.qdrant import QdrantStore
from meta_agent_rag.retrieval.stores.store import Added, Changes, Store, StorePlace
from tests.servers import free_port

NAME = "marag-busy"
PRODUCT = {"X-Elastic-Product": "Elasticsearch"}
PASSAGES = [Passage(id=f"p{number}", doc_id="d", title="", text=f"Text {number}.") for number in range(4)]
SECRET = "hush-0123456789"

Reply = tuple[int, object]
Answer = Callable[[list[str]], list[int]]


class Scripted(ThreadingHTTPServer):
    """Knows our index; answers bulk requests as `statuses` says, given the passage ids of the request."""

    daemon_threads = True

    def __init__(self, statuses: Answer, first: Reply = (200, {}), headers: dict[str, str] = PRODUCT) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses, self.first, self.headers = statuses, first, headers
        self.bulks: list[list[str]] = []
        self.refreshed = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def reply(self, path: str, body: str) -> Reply:
        if path.startswith(f"/{NAME}/_bulk"):
            lines = [json.loads(line) for line in body.splitlines()]
            sent = [f"p{line['index']['_id']}" for line in lines if "index" in line]
            self.bulks.append(sent)
            statuses = self.statuses(sent)
            error = {"type": "mapper_exception", "reason": "it does not fit"}
            items = [{"index": {"status": one} | ({} if one < 300 else {"error": error})} for one in statuses]
            return 200, {"errors": any(one >= 300 for one in statuses), "items": items}
        if path.startswith(f"/{NAME}/_refresh"):
            self.refreshed += 1
            return 200, {}
        return self.first


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        status, content = self.server.reply(self.path, body)
        sent = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**self.server.headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer  # noqa: N815  # the library looks up these names

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(server: Scripted) -> Iterator[Scripted]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def place(url: str) -> StorePlace:
    return StorePlace(folder=Path("unused"), name=NAME, dimension=1, url=url, api_key=SecretStr(SECRET))


async def update(url: str) -> None:
    rows = np.arange(4)
    added = Added(rows, PASSAGES, np.zeros((4, 1), dtype=np.float32))
    changes = Changes(removed=np.zeros(0, dtype=np.int64), added=rows, parts=lambda: iter([added]))
    store = ElasticsearchStore(place(url))
    try:
        await store.publish(changes)
    finally:
        await store.close()


async def drop(url: str, kind: type[Store[Any]] = ElasticsearchStore) -> None:
    store = kind(place(url))
    try:
        await store.drop()
    finally:
        await store.close()


async def test_only_failed_items_are_retried_followed_by_one_refresh() -> None:
    def busy_at_first(sent: list[str]) -> list[int]:
        if len(sent) == 4:
            return [201, 429, 201, 503]
        return [429, 200] if len(server.bulks) == 2 else [200]

    with serving(Scripted(busy_at_first)) as server:
        await update(server.url)
    assert server.bulks == [["p0", "p1", "p2", "p3"], ["p1", "p3"], ["p1"]]
    assert server.refreshed == 1


async def test_a_permanently_rejected_item_is_named_and_nothing_is_refreshed() -> None:
    complaint = pytest.raises(CorpusError, match=r"2 passage.*it does not fit")
    with serving(Scripted(lambda sent: [200, 400, 200, 400])) as server, complaint:
        await update(server.url)
    assert len(server.bulks) == 1
    assert server.refreshed == 0


@pytest.mark.parametrize("kind", [ElasticsearchStore, QdrantStore])
async def test_an_unreachable_server_is_reported(kind: type[Store[Any]]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(CorpusError, match=f"{url}.*does not respond") as caught:
        await drop(url, kind)
    assert SECRET not in str(caught.value)


async def test_a_key_that_qdrant_rejects_is_reported_with_the_server_and_the_setting() -> None:
    reply = (401, {"status": {"error": "Invalid API key"}})
    with serving(Scripted(lambda sent: [], first=reply, headers={})) as server:
        with pytest.raises(SettingsError, match=f"{server.url}.*QDRANT_API_KEY") as caught:
            await drop(server.url, QdrantStore)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "headers", "error", "message"),
    [
        (401, PRODUCT, SettingsError, "rejected the key; correct ELASTICSEARCH_API_KEY"),
        (403, PRODUCT, SettingsError, "rejected the key; correct ELASTICSEARCH_API_KEY"),
        (200, {}, SettingsError, "another product"),
        (500, PRODUCT, CorpusError, "rejected a request"),
    ],
)
async def test_refusals_name_the_server_and_no_secret(
    status: int, headers: dict[str, str], error: type[Exception], message: str
) -> None:
    body = {"error": {"type": "security_exception", "reason": "no"}, "status": status}
    with serving(Scripted(lambda sent: [], first=(status, body), headers=headers)) as server:
        for url in (server.url, server.url.replace("//", f"//elastic:{SECRET}@")):
            with pytest.raises(error, match=message) as caught:
                await drop(url)
            assert server.url in str(caught.value)
            assert SECRET not in str(caught.value)
