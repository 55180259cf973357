"""Vectors in a memory-mapped matrix, searched exactly; beyond 100,000 passages a graph finds the candidates.

An exact scan takes 10 ms over 24,000 passages and 33 ms over 100,000. The graph (usearch, HNSW) is
one memory-mapped file; its candidates are scored again from the matrix.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DamagedIndexError
from ..vectors import FloatMatrix, FloatVector, Rows
from .store import Changes, DenseStore, Hit, StoreBackend, StorePlace, dropped_with_folder, ordered

if TYPE_CHECKING:
    from usearch.index import Index

SCANNED = 100_000
"""The most passages that are searched without a graph."""
_VECTORS, _ROWS, _GRAPH = "vectors.npy", "rows.npy", "graph.usearch"
_EXPANSION = 256
"""The candidates that the graph keeps while it searches; more find more, and take longer."""
_COPIED = 16_384


class MatrixStore:
    """A `DenseStore` over the files of a folder, which stay open although the folder may be removed."""

    def __init__(self, folder: Path, dimension: int) -> None:
        try:
            self._rows, self._vectors = _opened(folder)
            self._graph = _viewed(folder / _GRAPH) if len(self._rows) > SCANNED else None
        except (OSError, ValueError, RuntimeError) as error:
            raise DamagedIndexError(f"The index {str(folder)!r} cannot be read: {error}") from error
        if self._vectors.shape != (len(self._rows), dimension):
            raise DamagedIndexError(f"The index {str(folder)!r} has vectors of shape {self._vectors.shape}.")

    async def search(self, vector: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k nearest rows, found in a thread."""
        if vector.shape != self._vectors.shape[1:]:
            raise ValueError(f"the vector has the shape {vector.shape}; {self._vectors.shape[1:]} is needed")
        if k < 1 or not len(self._rows):
            return []
        return await asyncio.to_thread(self._search, vector, k, among)

    def _search(self, vector: FloatVector, k: int, among: Rows | None) -> list[Hit]:
        places = self._candidates(vector, k, among)
        scores = (self._vectors if places is None else self._vectors[places]) @ vector
        if len(scores) > k:  # everything that may tie with rank k, since the order of ties is ours
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            chosen = np.flatnonzero(scores >= least - 1e-5)
        else:
            chosen = np.arange(len(scores))
        rows = self._rows[chosen if places is None else places[chosen]]
        cosines = np.clip(scores[chosen], -1.0, 1.0)
        return ordered([Hit(*one) for one in zip(cosines.tolist(), rows.tolist(), strict=True)], k)

    def _candidates(self, vector: FloatVector, k: int, among: Rows | None) -> Rows | None:
        """The places in the matrix to score; `None` for all."""
        if among is not None:
            return np.flatnonzero(np.isin(self._rows, among, assume_unique=True))
        if self._graph is None:
            return None
        keys = np.asarray(self._graph.search(vector, max(4 * k, _EXPANSION)).keys, dtype=np.int64)
        return np.searchsorted(self._rows, np.sort(keys))


async def publish(place: StorePlace, changes: Changes) -> None:
    """Write the matrix of the next state, and its graph if it is large."""
    await asyncio.to_thread(_write, place, changes)


@asynccontextmanager
async def open_store(place: StorePlace) -> AsyncIterator[MatrixStore]:
    """Open the matrix in the place's folder. Raises `DamagedIndexError`."""
    yield MatrixStore(place.folder, place.dimension)


MATRIX = StoreBackend[DenseStore](open=open_store, publish=publish, drop=dropped_with_folder)


def _write(place: StorePlace, changes: Changes) -> None:
    place.folder.mkdir(parents=True, exist_ok=True)
    if place.before is None:
        old_rows, old = np.zeros(0, dtype=np.int64), np.zeros((0, place.dimension), dtype=np.float32)
    else:
        old_rows, old = _opened(place.before)
    kept = ~np.isin(old_rows, changes.removed)
    rows = np.concatenate([old_rows[kept], changes.added])
    with (place.folder / _VECTORS).open("wb") as file:  # not mapped: on a full disk that would kill the process
        shape = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), place.dimension)}
        np.lib.format.write_array_header_1_0(file, shape)
        for start in range(0, len(old), _COPIED):
            part = slice(start, start + _COPIED)
            file.write(np.ascontiguousarray(old[part][kept[part]]).tobytes())
        for added in changes.parts():
            file.write(np.ascontiguousarray(added.vectors, dtype=np.float32).tobytes())
        file.flush()
        os.fsync(file.fileno())
    with (place.folder / _ROWS).open("wb") as file:
        np.save(file, rows)
    if len(rows) > SCANNED:
        _write_graph(place, changes)


def _write_graph(place: StorePlace, changes: Changes) -> None:
    """Continue the previous graph, or make one from the matrix."""
    from usearch.index import Index

    graph = Index(ndim=place.dimension, metric="cos", dtype="bf16", expansion_search=_EXPANSION)
    rows, vectors = _opened(place.folder)
    known = place.before / _GRAPH if place.before is not None else None
    if known is not None and known.is_file():
        graph.load(str(known))
        graph.remove(changes.removed.astype(np.uint64))
        first = len(rows) - len(changes.added)
        rows, vectors = rows[first:], vectors[first:]
    for start in range(0, len(rows), _COPIED):
        part = slice(start, start + _COPIED)
        graph.add(rows[part].astype(np.uint64), np.asarray(vectors[part]))
    graph.save(str(place.folder / _GRAPH))


def _opened(folder: Path) -> tuple[Rows, FloatMatrix]:
    return np.load(folder / _ROWS), np.load(folder / _VECTORS, mmap_mode="r")


def _viewed(file: Path) -> "Index":
    from usearch.index import Index

    graph = Index.restore(str(file), view=True, expansion_search=_EXPANSION)
    if graph is None:
        raise ValueError(f"{file.name} is no graph")
    return graph
