"""What a store can do, and how one is opened and removed.

A search returns at most k results, by falling score and then by passage id. What `update` has done is
there after a reopen, and survives the end of the process; in an embedded store it survives a power
cut once the store was closed. An update that was cut short is repaired by doing it again.
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
    """Where a store of one corpus lies: embedded stores in `folder`, others as `name` on the server at `url`.

    `passages` is how many an embedded store must hold, where that is known. `read_only` means that the folder is a
    copy which is only searched, and need not be kept whole. `compressed` asks a server that makes a new index to
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
        """Forget the passages with the ids `removed`, then keep `passages`; an existing id is replaced.

        A search sees all of an update or none of it. Unknown ids in `removed` are no error. `vectors`
        has the shape (len(passages), dimension); another shape is a `ValueError`.
        """

    async def search(self, vector: FloatVector, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k passages nearest to `vector`, shape (dimension,); the cosine is in `dense` and `score`.

        With `among`, only passages that have these ids.
        """

    def scan(self) -> AsyncIterator[Passage]:
        """Every passage once, in any order; nothing may be updated meanwhile."""


class LexicalStore(Protocol):
    """Passages by their words."""

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None:
        """Forget the passages with the ids `removed`, then keep `passages`; an existing id is replaced.

        A search sees all of an update or none of it. Titles are indexed like texts. Unknown ids in
        `removed` are no error.
        """

    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k best passages by BM25, which is in `lexical` and `score`; any text is a valid query.

        With `among`, only passages that have these ids; their scores are the same as without.
        """

    def scan(self) -> AsyncIterator[Passage]:
        """Every passage once, in any order; nothing may be updated meanwhile."""


@dataclass(frozen=True, kw_only=True)
class DenseBackend:
    """A kind of dense store.

    `open(place, dimension)` creates or reopens one and closes it afterwards. `drop(place)` removes one
    that nobody has open; if there is none, it does nothing. Both raise `CorpusError` where the store
    is not of this package's making, unreadable or out of reach; `open` also where it is open elsewhere
    or of another dimension, and `DamagedIndexError` where an embedded one is damaged. `served` means on a server,
    which several processes may use at once; other stores lie in a folder, which one process opens at a time.
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
