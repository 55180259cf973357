"""BM25 over titles and texts on an Elasticsearch server (version 9), through its async client.

A corpus is one index with one shard, so that term statistics cover the whole corpus. Titles and
texts are analysed by Elasticsearch's `english` analyser (standard tokens, Porter stems; accents count,
unlike in the embedded store) and scored by BM25 with k1 = 1.2 and b = 0.75, summed over both fields.
Scores have the same scale as the embedded store's: Elasticsearch also multiplies by k1 + 1.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ...errors import CorpusError, SettingsError
from ...extras import require
from ...text.names import stop_words
from ...text.normalise import encodable
from ..vectors import Rows
from .store import BATCH_SECONDS, SEARCH_SECONDS, Changes, Hit, Store, StorePlace, best, server_url, shown_url

_SETTING = "ELASTICSEARCH_URL"
_FIELDS = ("title", "text")
_ALL_WORDS, _CONTENT_WORDS = "english_all_words", "english_content_words"
_SIMILARITY = "passage_bm25"
_MOST_ROWS = 10_000
"""The most results that Elasticsearch returns for one search."""
_MOST_WORDS = 512
"""The most distinct words of a query that are searched: both fields together stay within 1,024 clauses."""
_WORD = re.compile(r"[a-z0-9_]+|\w")
"""A word, for counting the length of a query; in other scripts, every character."""


class ElasticsearchStore(Store[str]):
    """Words in an index of an Elasticsearch server."""

    def __init__(self, place: StorePlace) -> None:
        super().__init__(place)
        require("servers", _SETTING)
        from elasticsearch import AsyncElasticsearch

        parts = server_url(place, _SETTING)
        port = parts.port or (443 if parts.scheme == "https" else 9200)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        user = {"basic_auth": (parts.username, parts.password or "")} if parts.username else {}
        self._client = AsyncElasticsearch(
            f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}",
            **({"api_key": place.api_key.get_secret_value()} if place.api_key else user),
            request_timeout=SEARCH_SECONDS,
            max_retries=2,
            retry_on_status=(502, 503, 504),
            retry_on_timeout=False,
        )

    async def open(self) -> None:
        """Raise `CorpusError` if the index is missing."""
        with self._translated():
            exists = await self._client.indices.exists(index=self._place.name)
        if not exists:
            raise CorpusError(f"The index {self._place.name!r} is missing on its server; ingest it again.")

    async def search(self, query: str, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows, at most 10,000; empty for a query without words."""
        asked = _query(query, among)
        if asked is None:
            return []

        async def fetch(limit: int) -> list[Hit]:
            with self._translated():
                response = await self._client.search(
                    index=self._place.name,
                    query=asked,
                    size=min(limit, _MOST_ROWS),
                    source=False,
                    track_total_hits=False,
                )
            return [Hit(hit["_score"], int(hit["_id"])) for hit in response["hits"]["hits"]]

        return await best(fetch, k)

    async def publish(self, changes: Changes) -> None:
        """Index and delete in bulk, retrying items that a busy server rejects, then refresh once."""
        from elasticsearch.helpers import async_bulk

        def actions() -> Iterator[dict[str, Any]]:
            for added in changes.parts():
                for row, passage in zip(added.rows.tolist(), added.passages, strict=True):
                    yield {"_id": str(row), "title": encodable(passage.title), "text": encodable(passage.text)}
            for row in changes.removed.tolist():
                yield {"_op_type": "delete", "_id": str(row)}

        client, name = self._client.options(request_timeout=BATCH_SECONDS), self._place.name
        with self._translated():
            if not await client.indices.exists(index=name):
                await client.indices.create(index=name, **_description())
            _, outcomes = await async_bulk(
                client,
                actions(),
                index=name,
                max_retries=5,
                initial_backoff=0.1,
                retry_on_status=(429, 500, 502, 503, 504),
                raise_on_error=False,  # with it, single items are not retried
            )
            # deleting what is missing is no failure
            failed = [one["index"] for one in (outcomes if isinstance(outcomes, list) else []) if "index" in one]
            if failed:
                error = failed[0].get("error") or {}
                reason = f"{error.get('type')}: {error.get('reason')}"[:300]
                raise CorpusError(
                    f"Elasticsearch rejected {len(failed)} passage(s) of the index {name!r} ({reason}). "
                    "Fix that and try again."
                )
            await client.indices.refresh(index=name)

    async def drop(self) -> None:
        """Remove the index, if it exists."""
        with self._translated():
            await self._client.indices.delete(index=self._place.name, ignore_unavailable=True)

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translates the client's errors into this package's."""
        from elasticsearch import ApiError, SerializationError, TransportError, UnsupportedProductError

        server = f"Elasticsearch server at {shown_url(self._place.url or '')!r}"
        try:
            yield
        except (UnsupportedProductError, SerializationError) as error:
            raise SettingsError(f"The {server} is another product; correct {_SETTING}.") from error
        except TransportError as error:
            raise CorpusError(f"The {server} does not respond; start it, or correct {_SETTING}.") from error
        except ApiError as error:
            status, kind = error.meta.status, str(error.message)[:200]
            if status == 401 or (status == 403 and "block" not in kind):
                raise SettingsError(f"The {server} rejected the key; correct ELASTICSEARCH_API_KEY.") from error
            raise CorpusError(
                f"The {server} rejected a request ({status}, {kind}); check its log and {_SETTING}."
            ) from error


def _description() -> dict[str, Any]:
    """The settings and mappings of an index."""
    analysers = {_ALL_WORDS: "_none_", _CONTENT_WORDS: list(stop_words())}
    text = {
        "type": "text",
        "analyzer": _ALL_WORDS,
        "search_analyzer": _CONTENT_WORDS,
        "similarity": _SIMILARITY,
        "index_options": "freqs",
    }
    settings = {
        "number_of_shards": 1,
        "refresh_interval": "-1",
        "analysis": {"analyzer": {name: {"type": "english", "stopwords": words} for name, words in analysers.items()}},
        "similarity": {_SIMILARITY: {"type": "BM25", "k1": 1.2, "b": 0.75}},
    }
    return {"settings": settings, "mappings": {"dynamic": "strict", "properties": dict.fromkeys(_FIELDS, text)}}


def _query(text: str, among: Rows | None) -> dict[str, Any] | None:
    """Matches any of the words in any of the fields; `match` has no syntax. `None` without words.

    Function words count only if there are no others ("The Who").
    """
    asked = " ".join(dict.fromkeys(encodable(text).lower().split()))
    found = list(islice(_WORD.finditer(asked), _MOST_WORDS))
    if not found or (among is not None and not len(among)):
        return None
    functional = {word.group() for word in found} <= set(stop_words())
    match = {"query": asked[: found[-1].end()], "analyzer": _ALL_WORDS if functional else _CONTENT_WORDS}
    query: dict[str, Any] = {"should": [{"match": {field: match}} for field in _FIELDS], "minimum_should_match": 1}
    if among is not None:
        query["filter"] = [{"ids": {"values": list(map(str, among.tolist()))}}]
    return {"bool": query}
