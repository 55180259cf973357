"""Vectors in a memory-mapped matrix, searched exactly; beyond 100,000 passages a graph finds the candidates.

An exact scan takes 10 ms over 24,000 passages and 33 ms over 100,000. The graph (usearch, HNSW) is
one memory-mapped file; its candidates are scored again from the matrix.
"""

import asyncio
import os
from pathlib import Path

import numpy as np

from ...errors import DamagedIndexError
from ..vectors import FloatMatrix, FloatVector, Rows
from .store import ROWS_FILE, Changes, Hit, Store, ordered

SCANNED = 100_000
"""The most passages that are searched without a graph."""
_VECTORS, _GRAPH = "vectors.npy", "graph.usearch"
_EXPANSION = 256
"""The candidates that the graph keeps while it searches; more find more, and take longer."""
_COPIED = 16_384


class MatrixStore(Store[FloatVector]):
    """Vectors in the files of a folder, which stay open although the folder may be removed."""

    async def open(self) -> None:
        """Map the matrix. Raises `DamagedIndexError`."""
        folder = self._place.folder
        try:
            self._rows, self._vectors = _mapped(folder)
            self._graph = None
            if len(self._rows) > SCANNED:
                from usearch.index import Index

                self._graph = Index.restore(str(folder / _GRAPH), view=True, expansion_search=_EXPANSION)
        except (OSError, ValueError, RuntimeError) as error:
            raise DamagedIndexError(f"The index {str(folder)!r} cannot be read: {error}") from error
        if self._vectors.shape != (len(self._rows), self._place.dimension):
            raise DamagedIndexError(f"The index {str(folder)!r} has vectors of shape {self._vectors.shape}.")

    async def search(self, query: FloatVector, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k nearest rows, found in a thread."""
        if query.shape != self._vectors.shape[1:]:
            raise ValueError(f"the vector has the shape {query.shape}; {self._vectors.shape[1:]} is needed")
        if k < 1 or not len(self._rows):
            return []
        return await asyncio.to_thread(self._search, query, k, among)

    def _search(self, vector: FloatVector, k: int, among: Rows | None) -> list[Hit]:
        places = None  # all of them
        if among is not None:
            places = np.flatnonzero(np.isin(self._rows, among, assume_unique=True))
        elif self._graph is not None:
            keys = np.asarray(self._graph.search(vector, max(4 * k, _EXPANSION)).keys, dtype=np.int64)
            places = np.searchsorted(self._rows, np.sort(keys))
        scores = (self._vectors if places is None else self._vectors[places]) @ vector
        if len(scores) > k:  # everything that may tie with rank k, since the order of ties is ours
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            chosen = np.flatnonzero(scores >= least - 1e-5)
        else:
            chosen = np.arange(len(scores))
        rows = self._rows[chosen if places is None else places[chosen]]
        cosines = np.clip(scores[chosen], -1.0, 1.0)
        return ordered([Hit(*one) for one in zip(cosines.tolist(), rows.tolist(), strict=True)], k)

    async def publish(self, changes: Changes) -> None:
        """Write the matrix of the next state, and its graph if it is large."""
        await asyncio.to_thread(self._write, changes)

    def _write(self, changes: Changes) -> None:
        place = self._place
        rows = np.load(place.folder / ROWS_FILE)
        old_rows, old = np.zeros(0, dtype=np.int64), np.zeros((0, place.dimension), dtype=np.float32)
        if place.before is not None:
            old_rows, old = _mapped(place.before)
        kept = ~np.isin(old_rows, changes.removed)
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
        if len(rows) > SCANNED:
            self._write_graph(changes)

    def _write_graph(self, changes: Changes) -> None:
        """Continue the previous graph, or make one from the matrix."""
        from usearch.index import Index

        place = self._place
        graph = Index(ndim=place.dimension, metric="cos", dtype="bf16", expansion_search=_EXPANSION)
        rows, vectors = _mapped(place.folder)
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


def _mapped(folder: Path) -> tuple[Rows, FloatMatrix]:
    return np.load(folder / ROWS_FILE), np.load(folder / _VECTORS, mmap_mode="r")
