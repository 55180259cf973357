"""The interface of stores: from a vector or words to rows of passages, whose texts are in the catalogue.

An embedded store is a folder that is written once and then only read: a change is published as another
folder, and a reader keeps the one that it opened. A store on a server is changed in place; rows that
the catalogue no longer has, or that were published later, are ignored by its readers.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from ...errors import SettingsError
from ..passage import Passage
from ..vectors import FloatMatrix, Rows

BATCH_SECONDS = 60
"""The time limit for one batch of an update on a server."""
SEARCH_SECONDS = 20
"""The time limit for all other requests."""
ROWS_FILE = "rows.npy"
"""The rows of a state, ascending, in its folder; written before any store is published there."""
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


Query = TypeVar("Query")


class Store(ABC, Generic[Query]):
    """A store at its place, which searches rows by the cosine of their vectors, or by BM25 over title and text.

    `Query` is a vector of shape (dimension,), or any text. All methods raise `CorpusError` for a store that is
    unreadable or unreachable, and `SettingsError` for a server's malformed URL or rejected key.
    """

    def __init__(self, place: StorePlace) -> None:
        self._place = place

    @abstractmethod
    async def publish(self, changes: Changes) -> None:
        """Apply changes; may be repeated."""

    @abstractmethod
    async def open(self) -> None:
        """Make what was published ready for searches."""

    @abstractmethod
    async def search(self, query: Query, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows, by descending score and then by row.

        With `among`, ascending, only these rows; their scores are the same as without.
        """

    async def drop(self) -> None:
        """Remove the store from its server, if it exists; an embedded one goes with its folder."""

    async def close(self) -> None:
        """Close the connection to the server."""


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
        found = ordered(hits, len(hits))
        if len(hits) < limit or limit >= _MOST_ROWS or found[-1].score < found[k - 1].score:
            return found[:k]
        limit *= 4


def server_url(place: StorePlace, setting: str) -> SplitResult:
    """The parts of the place's URL; raises `SettingsError` if it is missing or malformed."""
    try:
        parts = urlsplit(place.url or "")
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(f"{setting} is {shown_url(place.url or '')!r}; write it as http://HOST:PORT.")
    return parts


def shown_url(url: str) -> str:
    """The URL for a message: no user, no password, no query.

    >>> shown_url("https://elastic:secret@search.example:9200/path?key=1")
    'https://search.example:9200/path'
    """
    plain = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = plain.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
