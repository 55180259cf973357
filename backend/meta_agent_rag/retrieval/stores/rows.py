"""The stored form of a passage, and the order of search results."""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

from ..passage import Passage, from_fields, to_fields

T = TypeVar("T")
_DECIMALS = 5
_MARGIN = 8
_MOST_ROWS = 4096


class Row(NamedTuple):
    """A stored passage as returned by a search: score, passage id, and the passage as JSON."""

    score: float
    passage_id: str
    record: str


def to_record(passage: Passage) -> str:
    """The passage as one line of ASCII JSON, in which even a NUL or a lone surrogate is harmless."""
    return json.dumps(to_fields(passage), separators=(",", ":"))


@lru_cache(maxsize=4096)
def from_record(record: str) -> Passage:
    """The passage that `to_record` wrote; cached, because many searches return the same ones."""
    return from_fields(json.loads(record))


def to_key(passage_id: str) -> str:
    r"""The id in printable ASCII, with other characters escaped as in JSON; used by engines as key and filter.

    >>> to_key("café")
    'caf\\u00e9'
    """
    return json.dumps(passage_id)[1:-1]


def from_key(key: str) -> str:
    """The id that `to_key` was given."""
    return str(json.loads(f'"{key}"')) if "\\" in key else key


def latest(passages: Sequence[Passage], removed: Sequence[str]) -> tuple[list[int], list[str]]:
    """An update without duplicates: positions of the last passage of each id, and the other ids to delete."""
    positions = {passage.id: position for position, passage in enumerate(passages)}
    gone = [passage_id for passage_id in dict.fromkeys(removed) if passage_id not in positions]
    return list(positions.values()), gone


def in_parts(values: Sequence[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def best_rows(fetch: Callable[[int], list[Row]], k: int) -> list[Row]:
    """The k best rows by descending score, then by passage id.

    `fetch(limit)` returns the `limit` best rows by score, with ties in any order; it is therefore called with
    higher limits until the tie at rank k is complete (up to 4,096 rows or k). Scores are rounded to 5
    decimals, because the last bits of a vector depend on the batch in which it was computed.
    """
    asking = _Asking(k)
    while not asking.done:
        asking.take(fetch(asking.limit))
    return asking.best


async def best_rows_async(fetch: Callable[[int], Awaitable[list[Row]]], k: int) -> list[Row]:
    """`best_rows` for a store on the network."""
    asking = _Asking(k)
    while not asking.done:
        asking.take(await fetch(asking.limit))
    return asking.best


class _Asking:
    """The number of rows to fetch next, until the k best are certain."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.limit = k + _MARGIN
        self.done = k < 1
        self.best: list[Row] = []

    def take(self, fetched: Sequence[Row]) -> None:
        # Tuples that sort natively, because this runs for every search.
        ordered = sorted((-round(score, _DECIMALS), passage_id, record) for score, passage_id, record in fetched)
        self.best = [Row(-score, passage_id, record) for score, passage_id, record in ordered[: self.k]]
        if len(ordered) < self.limit or self.limit >= _MOST_ROWS or ordered[-1][0] > ordered[self.k - 1][0]:
            self.done = True
        self.limit *= 4
