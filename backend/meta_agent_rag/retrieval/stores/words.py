"""BM25 over titles and texts, on disk, with tantivy.

tantivy scores a term t of a query in a field f as BM25 with k1 = 1.2 and b = 0.75 (its constants, which
cannot be changed here), idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)); a passage's score is the sum over
terms and over the two fields, both with weight 1. Removed passages still count in n and N until tantivy merges
them away.

A state begins as hard links to the files of the previous one, which tantivy never changes: only what is new is written.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import DamagedIndexError, StorageError
from ...text.names import stop_words
from ...text.normalise import encodable
from ..vectors import Rows
from .store import Changes, Hit, Store, best

if TYPE_CHECKING:
    import tantivy

_FOLDER = "words"
_FIELDS = ("title", "text")
_ANALYSER = "english"
_WRITER_BYTES = 50_000_000
_MOST_TERMS = 1024
"""The most distinct terms of a query that are searched; a longer query is truncated."""


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
            if not (folder / "meta.json").is_file():  # tantivy would create an empty index
                raise ValueError("its files are missing")
            self._index = _index(folder)
            self._searcher = self._index.searcher()

    async def search(self, query: str, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows; empty for a query without words."""
        from tantivy import Occur, Query

        words = encodable(query)
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
                    document = Document(title=encodable(passage.title), text=encodable(passage.text))
                    document.add_unsigned("row", row)
                    writer.add_document(document)
            writer.commit()
            writer.wait_merging_threads()
        except ValueError as error:  # the library has no exception class
            raise StorageError(f"The index {str(folder)!r} cannot be written: {error}; free disk space.") from error


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
