"""What a store can do, and how one is opened.

Adding an id again replaces the passage. A search returns at most k results, by falling score and
then by passage id. What `add` and `remove` have done is there after a reopen, and survives the end of
the process; it survives a power cut once the store was closed.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..passage import Found, Passage
from ..vectors import FloatMatrix, FloatVector


class DenseStore(Protocol):
    """Passages by the cosine of their vectors."""

    async def add(self, passages: Sequence[Passage], vectors: FloatMatrix) -> None:
        """Keep `passages` with `vectors`, shape (len(passages), dimension); another shape is a `ValueError`."""

    async def search(self, vector: FloatVector, k: int) -> list[Found]:
        """The k passages nearest to `vector`, shape (dimension,); the cosine is in `dense` and `score`."""

    async def remove(self, ids: Sequence[str]) -> None:
        """Forget the passages with these ids; unknown ids are no error."""


class LexicalStore(Protocol):
    """Passages by their words."""

    async def add(self, passages: Sequence[Passage]) -> None:
        """Keep `passages`, titles indexed like texts."""

    async def search(self, text: str, k: int) -> list[Found]:
        """The k best passages by BM25, which is in `lexical` and `score`; any text is a valid query."""

    async def remove(self, ids: Sequence[str]) -> None:
        """Forget the passages with these ids; unknown ids are no error."""


@dataclass(frozen=True, kw_only=True)
class DenseBackend:
    """A kind of dense store. `open(folder, dimension)` creates or reopens one and closes it afterwards.

    It raises `CorpusError` where the store is open elsewhere, unreadable, or of another dimension.
    """

    name: str
    open: Callable[[Path, int], AbstractAsyncContextManager[DenseStore]]


@dataclass(frozen=True, kw_only=True)
class LexicalBackend:
    """A kind of lexical store. `open(folder)` creates or reopens one and closes it afterwards.

    It raises `CorpusError` where the store is open elsewhere or unreadable.
    """

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[LexicalStore]]
