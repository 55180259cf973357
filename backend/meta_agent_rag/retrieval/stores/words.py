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
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import DamagedIndexError, StorageError
from ...text.names import stop_words
from ...text.normalise import encodable
from ..vectors import Rows
from .store import Changes, Hit, LexicalStore, StoreBackend, StorePlace, best, dropped_with_folder

if TYPE_CHECKING:
    import tantivy

_FOLDER = "words"
_FIELDS = ("title", "text")
_ANALYSER = "english"
_WRITER_BYTES = 50_000_000
_MOST_TERMS = 1024
"""The most distinct terms of a query that are searched; a longer query is truncated."""


class WordStore:
    """A `LexicalStore` over the files of a folder, which stay open although the folder may be removed."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        self._tantivy = tantivy
        self._folder = folder
        self._all_words = _analyser(without=())
        self._content_words = _analyser(without=stop_words())
        with self._reading():
            if not (folder / "meta.json").is_file():  # tantivy would create an empty index
                raise ValueError("its files are missing")
            self._index = _opened(folder)
            self._searcher = self._index.searcher()

    async def search(self, text: str, k: int, *, among: Rows | None = None) -> list[Hit]:
        """The k best rows; empty for a query without words."""
        words = encodable(text)
        # function words count only if there are no others ("The Who")
        analysed = self._content_words.analyze(words) or self._all_words.analyze(words)
        terms = list(dict.fromkeys(analysed))[:_MOST_TERMS]
        if not terms or (among is not None and not len(among)):
            return []
        # built, not parsed, because a user's text has no syntax: any of the terms in any of the fields
        kind, schema, occur = self._tantivy.Query, self._index.schema, self._tantivy.Occur
        wanted = [kind.term_query(schema, field, term, "freq") for term in terms for field in _FIELDS]
        query = kind.boolean_query([(occur.Should, one) for one in wanted])
        if among is not None:
            allowed = kind.const_score_query(kind.term_set_query(schema, "row", among.tolist()), 0.0)
            query = kind.boolean_query([(occur.Must, query), (occur.Must, allowed)])

        async def fetch(limit: int) -> list[Hit]:
            with self._reading():  # a millisecond or two: a thread would cost as much
                found = self._searcher.search(query, limit, count=False).hits
                rows = self._searcher.fast_field_values("row", [address for _, address in found])
            return [Hit(score, int(row)) for (score, _), row in zip(found, rows, strict=True) if row is not None]

        return await best(fetch, k)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # a panic of an engine in Rust, whose class cannot be imported
            if isinstance(error, ValueError | OSError) or type(error).__name__ == "PanicException":
                raise DamagedIndexError(f"The index {str(self._folder)!r} cannot be read: {error}") from error
            raise


async def publish(place: StorePlace, changes: Changes) -> None:
    """Write the index of the next state."""
    await asyncio.to_thread(_write, place, changes)


@asynccontextmanager
async def open_store(place: StorePlace) -> AsyncIterator[WordStore]:
    """Open the index in the place's folder. Raises `DamagedIndexError`."""
    yield await asyncio.to_thread(WordStore, place.folder / _FOLDER)


TANTIVY = StoreBackend[LexicalStore](open=open_store, publish=publish, drop=dropped_with_folder)


def _write(place: StorePlace, changes: Changes) -> None:
    import tantivy

    folder = place.folder / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if place.before is not None:
        for file in (place.before / _FOLDER).iterdir():
            if file.suffix != ".lock":
                _linked(file, folder / file.name)
    index = _opened(folder)
    writer = index.writer(_WRITER_BYTES, num_threads=1)
    try:
        if len(changes.removed):
            writer.delete_documents_by_query(
                tantivy.Query.term_set_query(index.schema, "row", changes.removed.tolist())
            )
        for added in changes.parts():
            for row, passage in zip(added.rows.tolist(), added.passages, strict=True):
                texts = {"title": encodable(passage.title), "text": encodable(passage.text)}
                document = tantivy.Document(**texts)
                document.add_unsigned("row", row)
                writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
    except ValueError as error:  # the library has no exception class
        raise StorageError(f"The index {str(folder)!r} cannot be written: {error}; free disk space.") from error


def _linked(file: Path, copy: Path) -> None:
    try:
        os.link(file, copy)
    except OSError:  # a file system without hard links
        shutil.copy2(file, copy)


def _opened(folder: Path) -> "tantivy.Index":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", indexed=True, fast=True)
    for field in _FIELDS:
        builder.add_text_field(field, tokenizer_name=_ANALYSER, index_option="freq")
    index = tantivy.Index(builder.build(), str(folder))
    index.register_tokenizer(_ANALYSER, _analyser(without=()))
    return index


def _analyser(*, without: Sequence[str]) -> "tantivy.TextAnalyzer":
    """Lower case, no accents, stemmed (Snowball English); the words in `without` are dropped before stemming."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(64))
    builder = builder.filter(Filter.lowercase()).filter(Filter.ascii_fold())
    return builder.filter(Filter.custom_stopword(list(without))).filter(Filter.stemmer("english")).build()
