"""What a retriever is, what it returns, and how it is limited to some documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import InputError
from .passage import Found
from .screening import Dropped


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """The result of a retrieval.

    `found` are at most k passages, best first. `dropped` are those that would have been among them
    if screening had not removed them. `pool_ids` are the ids of all candidates, best first, before
    any were excluded or dropped.
    """

    found: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    pool_ids: tuple[str, ...] = ()


class Retriever(Protocol):
    """Finds passages for questions."""

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """The k best passages for the queries together, without those whose ids are in `exclude`."""


def limited(retriever: Retriever, documents: frozenset[str]) -> Retriever:
    """The retriever over the documents with these ids alone; over all if there are none.

    Raises `InputError` for a retriever that has no corpus.
    """
    if not documents:
        return retriever
    if (limited_to := getattr(retriever, "limited_to", None)) is None:
        raise InputError("Only a corpus can be limited to some of its documents; leave the documents out.")
    narrowed: Retriever = limited_to(documents)
    return narrowed
