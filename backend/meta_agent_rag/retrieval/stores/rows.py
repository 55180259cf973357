"""What both stores keep of a passage, and the order of what they return."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

from ..passage import Passage

_DECIMALS = 5
_MARGIN = 8
_MOST_ROWS = 4096


class Row(NamedTuple):
    """A stored passage as a search returns it: score, passage id, and the passage as JSON."""

    score: float
    passage_id: str
    record: str


def to_record(passage: Passage) -> str:
    """The passage as one line of ASCII JSON, in which even a NUL or a lone surrogate is harmless."""
    return json.dumps(asdict(passage), separators=(",", ":"))


def from_record(record: str) -> Passage:
    """The passage that `to_record` wrote."""
    fields = json.loads(record)
    span = fields.pop("span")
    return Passage(**fields, span=None if span is None else (span[0], span[1]))


def best_rows(fetch: Callable[[int], list[Row]], k: int) -> list[Row]:
    """The k best rows by falling score, then by passage id.

    `fetch(limit)` returns the `limit` best rows by score, with ties in any order; so it is asked for
    more until the tie at the k-th place is complete (up to 4,096 rows or k). Scores are rounded to 5
    decimals, since the last bits of a vector depend on the batch that it was computed in.
    """
    if k < 1:
        return []
    limit = k + _MARGIN
    while True:
        rows = [row._replace(score=round(row.score, _DECIMALS)) for row in fetch(limit)]
        ordered = sorted(rows, key=lambda row: (-row.score, row.passage_id))
        if len(rows) < limit or limit >= _MOST_ROWS or ordered[-1].score < ordered[k - 1].score:
            return ordered[:k]
        limit *= 4
