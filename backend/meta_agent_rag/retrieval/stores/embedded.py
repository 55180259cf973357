"""The embedded stores of a corpus, on disk: vectors in a memory-mapped matrix, and BM25 with tantivy.

Vectors are searched exactly: a scan takes 10 ms over 24,000 passages and 33 ms over 100,000. Beyond these a graph
(usearch, HNSW), one memory-mapped file, finds candidates, which are scored again from the matrix.

tantivy scores a term t of a query in a field f as BM25 with k1 = 1.2 and b = 0.75 (its constants, which
cannot be changed here), idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)); a passage's score is the sum over
terms and over the two fields, both with weight 1. Removed passages still count in n and N until tantivy merges
them away. A state begins as hard links to the files of the previous one, which tantivy never changes: only what is new
is written.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DamagedIndexError, StorageError
from ...text.names import stop_words
from ...text.normalise import apart, encodable
from ..vectors import FloatMatrix, FloatVector, Rows
from .store import ROWS_FILE, Changes, Hit, Store, best, ordered

if TYPE_CHECKING:
    import tantivy

SCANNED = 100_000
"""The most passages that are searched without a graph."""
_VECTORS, _GRAPH = "vectors.npy", "graph.usearch"
_EXPANSION = 256
"""The candidates that the graph keeps while it searches; more find more, and take longer."""
_COPIED = 16_384
_FOLDER = "words"
_FIELDS = ("title", "text")
_ANALYSER = "english"
_WRITER_BYTES = 50_000_000
_MOST_TERMS = 1024
"""The most distinct terms of a query that are searched; a longer query is truncated."""


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


class WordStore(Store[str]):
    """Words in the files of a folder, which stay open although the folder may be removed."""

    async def open(self) -> None:
        """Open the index. Raises `DamagedIndexError`."""
        await asyncio.to_thread(self._open)

    def _open(self) -> None:
        folder = self._place.folder / _FOLDER
        self._all_words = _analyser(without=())
        self._content_words = _analyser(without=stop_words())
        with self._reading():
            _require_index(folder)
            self._index = _index(folder)
            self._searcher = self._index.searcher()

    async def search(self, query: str, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows; empty for a query without words."""
        from tantivy import Occur, Query

        words = apart(encodable(query))
        # function words count only if there are no others ("The Who")
        analysed = self._content_words.analyze(words) or self._all_words.analyze(words)
        terms = list(dict.fromkeys(analysed))[:_MOST_TERMS]
        if not terms or (among is not None and not len(among)):
            return []
        # built, not parsed, because a user's text has no syntax: any of the terms in any of the fields
        schema = self._index.schema
        wanted = [Query.term_query(schema, field, term, "freq") for term in terms for field in _FIELDS]
        asked = Query.boolean_query([(Occur.Should, one) for one in wanted])
        if among is not None:
            allowed = Query.const_score_query(Query.term_set_query(schema, "row", among.tolist()), 0.0)
            asked = Query.boolean_query([(Occur.Must, asked), (Occur.Must, allowed)])

        async def fetch(limit: int) -> list[Hit]:
            with self._reading():  # a millisecond or two: a thread would cost as much
                found = self._searcher.search(asked, limit, count=False).hits
                rows = self._searcher.fast_field_values("row", [address for _, address in found])
            return [Hit(score, int(row)) for (score, _), row in zip(found, rows, strict=True) if row is not None]

        return await best(fetch, k)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # a panic of an engine in Rust, whose class cannot be imported
            if isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException":
                raise DamagedIndexError(f"The index {str(self._place.folder)!r} cannot be read: {error}") from error
            raise

    async def publish(self, changes: Changes) -> None:
        """Write the index of the next state."""
        await asyncio.to_thread(self._write, changes)

    def _write(self, changes: Changes) -> None:
        from tantivy import Document, Query

        folder, before = self._place.folder / _FOLDER, self._place.before
        folder.mkdir(parents=True, exist_ok=True)
        if before is not None:
            _require_index(before / _FOLDER)
        for file in (before / _FOLDER).iterdir() if before is not None else ():
            if file.suffix != ".lock":
                try:
                    os.link(file, folder / file.name)
                except OSError:  # a file system without hard links
                    shutil.copy2(file, folder / file.name)
        index = _index(folder)
        writer = index.writer(_WRITER_BYTES, num_threads=1)
        try:
            if len(changes.removed):
                writer.delete_documents_by_query(Query.term_set_query(index.schema, "row", changes.removed.tolist()))
            for added in changes.parts():
                for row, passage in zip(added.rows.tolist(), added.passages, strict=True):
                    title, text = apart(encodable(passage.title)), apart(encodable(passage.text))
                    document = Document(title=title, text=text)
                    document.add_unsigned("row", row)
                    writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()
        except ValueError as error:  # the library has no exception class
            raise StorageError(f"The index {str(folder)!r} cannot be written: {error}; free disk space.") from error


def _require_index(folder: Path) -> None:
    """Raise `ValueError` if there is no index: tantivy would create an empty one."""
    if not (folder / "meta.json").is_file():
        raise ValueError("its files are missing")


def _index(folder: Path) -> "tantivy.Index":
    from tantivy import Index, SchemaBuilder

    builder = SchemaBuilder()
    builder.add_unsigned_field("row", indexed=True, fast=True)
    for field in _FIELDS:
        builder.add_text_field(field, tokenizer_name=_ANALYSER, index_option="freq")
    index = Index(builder.build(), str(folder))
    index.register_tokenizer(_ANALYSER, _analyser(without=()))
    return index


def _analyser(*, without: Sequence[str]) -> "tantivy.TextAnalyzer":
    """Lower case, no accents, stemmed (Snowball English); the words in `without` are dropped before stemming."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(64))
    builder = builder.filter(Filter.lowercase()).filter(Filter.ascii_fold())
    return builder.filter(Filter.custom_stopword(list(without))).filter(Filter.stemmer("english")).build()
