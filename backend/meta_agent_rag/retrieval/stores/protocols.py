"""The interface of stores, and how they are opened and removed.

A search returns at most k results, by descending score and then by passage id. The effects of `update` are
visible after a reopen, and survive the end of the process; in an embedded store they survive a power
cut once the store was closed. An interrupted update is repaired by repeating it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from ..passage import Found, Passage
from ..vectors import FloatMatrix, FloatVector


@dataclass(frozen=True, kw_only=True)
class StorePlace:
    """The place of a corpus's store: embedded stores in `folder`, others as `name` on the server at `url`.

    `passages` is the number that an embedded store must hold, if known. `read_only` means that the folder is a
    copy which is only searched, and need not be kept intact. `compressed` asks a server that creates a new index to
    keep short codes of the vectors in memory and the vectors on disk.
    """

    folder: Path
    name: str
    url: str | None = None
    api_key: SecretStr | None = None
    passages: int | None = None
    read_only: bool = False
    compressed: bool = False


class DenseStore(Protocol):
    """Passages by the cosine of their vectors."""

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, *, removed: Sequence[str] = ()) -> None:
        """Delete the passages with the ids `removed`, then store `passages`; existing ids are replaced.

        A search sees all of an update or none of it. Unknown ids in `removed` are ignored. `vectors`
        has the shape (len(passages), dimension); any other shape is a `ValueError`.
        """

    async def search(self, vector: FloatVector, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k passages nearest to `vector`, shape (dimension,); the cosine is in `dense` and `score`.

        With `among`, only passages with these ids.
        """

    def scan(self) -> AsyncIterator[Passage]:
        """Every passage once, in any order; there must be no updates meanwhile."""


class LexicalStore(Protocol):
    """Passages by their words."""

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None:
        """Delete the passages with the ids `removed`, then store `passages`; existing ids are replaced.

        A search sees all of an update or none of it. Titles are indexed like texts. Unknown ids in
        `removed` are ignored.
        """

    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k best passages by BM25, which is in `lexical` and `score`; any text is a valid query.

        With `among`, only passages with these ids; their scores are the same as without.
        """

    def scan(self) -> AsyncIterator[Passage]:
        """Every passage once, in any order; there must be no updates meanwhile."""


@dataclass(frozen=True, kw_only=True)
class DenseBackend:
    """A kind of dense store.

    `open(place, dimension)` creates or reopens one and closes it afterwards. `drop(place)` removes one
    that nobody has open; if it does not exist, it does nothing. Both raise `CorpusError` if the store
    was not created by this package, is unreadable or unreachable; `open` also if it is open elsewhere
    or has another dimension, and `DamagedIndexError` if an embedded one is damaged. `served` means on a server,
    which several processes may use at once; other stores are in a folder, which one process opens at a time.
    """

    name: str
    open: Callable[[StorePlace, int], AbstractAsyncContextManager[DenseStore]]
    drop: Callable[[StorePlace], Awaitable[None]]
    served: bool = False


@dataclass(frozen=True, kw_only=True)
class LexicalBackend:
    """A kind of lexical store: `open(place)`, `drop(place)` and `served` as for a `DenseBackend`."""

    name: str
    open: Callable[[StorePlace], AbstractAsyncContextManager[LexicalStore]]
    drop: Callable[[StorePlace], Awaitable[None]]
    served: bool = False
