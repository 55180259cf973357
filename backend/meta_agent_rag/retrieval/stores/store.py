"""The interface of stores: from a vector or words to rows of passages, whose texts are in the catalogue.

An embedded store is a folder that is written once and then only read: a change is published as another
folder, and a reader keeps the one that it opened. A store on a server is changed in place; rows that
the catalogue no longer has, or that were published later, are ignored by its readers.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from ...errors import SettingsError
from ..passage import Passage
from ..vectors import FloatMatrix, FloatVector, Rows

BATCH_SECONDS = 60
"""The time limit for one batch of an update on a server."""
SEARCH_SECONDS = 20
"""The time limit for all other requests."""
CREATED_BY = "meta-agent-rag"
"""The mark of collections and indexes on servers that are ours; no other is touched."""
_DECIMALS = 5
_MARGIN = 8
_MOST_ROWS = 4096


class Hit(NamedTuple):
    """A row that a search found."""

    score: float
    row: int


class Added(NamedTuple):
    """Some new passages with their rows and vectors."""

    rows: Rows
    passages: Sequence[Passage]
    vectors: FloatMatrix


@dataclass(frozen=True, kw_only=True)
class Changes:
    """From one state of a corpus to the next: rows that are gone, and rows that are new and larger than all others."""

    removed: Rows
    added: Rows
    parts: Callable[[], Iterator[Added]]
    """The new passages, some at a time."""


@dataclass(frozen=True, kw_only=True)
class StorePlace:
    """The place of a corpus's store: an embedded one in `folder`, others as `name` on the server at `url`.

    `dimension` is the length of the vectors, and `before` the folder of the embedded store's previous state.
    """

    folder: Path
    name: str
    dimension: int
    before: Path | None = None
    url: str | None = None
    api_key: SecretStr | None = None


class DenseStore(Protocol):
    """Rows by the cosine of their vectors."""

    async def search(self, vector: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k rows nearest to `vector`, shape (dimension,), by descending cosine and then by row.

        With `among`, ascending, only these rows.
        """


class LexicalStore(Protocol):
    """Rows by their words."""

    async def search(self, text: str, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows by BM25 over title and text, by descending score and then by row; any text is a valid query.

        With `among`, ascending, only these rows; their scores are the same as without.
        """


Store = TypeVar("Store")


@dataclass(frozen=True, kw_only=True)
class StoreBackend(Generic[Store]):
    """A kind of store.

    `publish(place, changes)` applies changes and may be repeated; `open(place)` opens the result; `drop(place)` removes
    it, if it exists. All raise `CorpusError` for a store that is unreadable or unreachable,
    or was not created by this package.
    """

    open: Callable[[StorePlace], AbstractAsyncContextManager[Store]]
    publish: Callable[[StorePlace, Changes], Awaitable[None]]
    drop: Callable[[StorePlace], Awaitable[None]]


async def dropped_with_folder(place: StorePlace) -> None:
    """The `drop` of an embedded store: its folder is the corpus's to remove."""


def ordered(hits: Sequence[Hit], k: int) -> list[Hit]:
    """The k best, ties by row. Scores are rounded, because a vector's last bits depend on the batch it was in."""
    rounded = sorted((-round(hit.score, _DECIMALS), hit.row) for hit in hits)
    return [Hit(-score, row) for score, row in rounded[:k]]


async def best(fetch: Callable[[int], Awaitable[list[Hit]]], k: int) -> list[Hit]:
    """The k best of an engine that gives ties in any order.

    `fetch(limit)` returns the `limit` best hits; it is called with higher limits until the tie at rank k is complete.
    """
    if k < 1:
        return []
    limit = k + _MARGIN
    while True:
        hits = await fetch(limit)
        scores = sorted((round(hit.score, _DECIMALS) for hit in hits), reverse=True)
        if len(hits) < limit or limit >= _MOST_ROWS or scores[-1] < scores[k - 1]:
            return ordered(hits, k)
        limit *= 4


def server_url(place: StorePlace, setting: str) -> SplitResult:
    """The parts of the place's URL; raises `SettingsError` if it is missing or malformed."""
    if not place.url:
        raise SettingsError(f"No server is set for the corpus index {place.name!r}; set {setting}.")
    try:
        parts = urlsplit(place.url)
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"{setting} is not a URL; write it as http://HOST:PORT.") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise SettingsError(f"{setting} is {shown_url(place.url)!r}; write it as http://HOST:PORT.")
    return parts


def shown_url(url: str) -> str:
    """The URL for a message: no user, no password, no query.

    >>> shown_url("https://elastic:secret@search.example:9200/path?key=1")
    'https://search.example:9200/path'
    """
    plain = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = plain.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
