"""BM25 over titles and texts, on disk, with tantivy.

tantivy scores a term t of a query in a field f as BM25 with k1 = 1.2 and b = 0.75 (its constants, not
to be changed from here), idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)); a passage's score is the sum over
terms and over the two fields, both with weight 1. Passages that were removed or replaced still count
in n and N until tantivy merges them away, so scores may shift a little after the next open.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from ...errors import CorpusError
from ..passage import Found, Passage
from .protocols import LexicalBackend
from .rows import Row, best_rows, from_record, to_record

if TYPE_CHECKING:
    import tantivy

_FIELDS = ("title", "text")
_ANALYSER = "english"
_WRITER_BYTES = 50_000_000
_MOST_TERMS = 1024
"""Distinct terms of a query that are searched; a longer query is cut here."""


class TantivyStore:
    """A `LexicalStore`; get one from `open_store`."""

    def __init__(self, folder: Path) -> None:
        import tantivy

        self._tantivy = tantivy
        self._index = tantivy.Index(_schema(), str(folder))
        self._all_words = _analyser(without=())
        self._content_words = _analyser(without=_stop_words())
        self._index.register_tokenizer(_ANALYSER, self._all_words)
        # Opened at once: its lock is what keeps a second process out.
        self._writer = self._index.writer(_WRITER_BYTES, num_threads=1)
        self._writing = threading.Lock()

    async def add(self, passages: Sequence[Passage]) -> None:
        """Index `passages` and commit (about 90 ms): add many at once."""
        if passages:
            await asyncio.to_thread(self._write, [passage.id for passage in passages], passages)

    async def remove(self, ids: Sequence[str]) -> None:
        """Forget these passages and commit."""
        if ids:
            await asyncio.to_thread(self._write, ids, ())

    async def search(self, text: str, k: int) -> list[Found]:
        """The k best passages; none for a query without a word."""
        rows = await asyncio.to_thread(self._search, text, k)
        return [Found(passage=from_record(row.record), score=row.score, lexical=row.score) for row in rows]

    def close(self) -> None:
        """Finish merging and let go of the lock."""
        with self._writing:
            self._writer.wait_merging_threads()

    def _write(self, outdated: Sequence[str], passages: Sequence[Passage]) -> None:
        latest = {passage.id: passage for passage in passages}
        with self._writing:
            for passage_id in dict.fromkeys(outdated):
                self._writer.delete_documents_by_term("id", passage_id)
            for passage in latest.values():
                fields = {"id": passage.id, "title": _encodable(passage.title), "text": _encodable(passage.text)}
                self._writer.add_document(self._tantivy.Document(**fields, record=to_record(passage).encode()))
            self._writer.commit()
            self._index.reload()

    def _search(self, text: str, k: int) -> list[Row]:
        terms = self._terms(text)
        if not terms:
            return []
        query = self._query(terms)
        searcher = self._index.searcher()

        def fetch(limit: int) -> list[Row]:
            hits = searcher.search(query, limit, count=False).hits
            documents = [(score, searcher.doc(address)) for score, address in hits]
            return [Row(score, document["id"][0], document["record"][0].decode()) for score, document in documents]

        return best_rows(fetch, k)

    def _terms(self, text: str) -> list[str]:
        """Distinct analysed words; function words count only where there are no others ("The Who")."""
        words = _encodable(text)
        terms = self._content_words.analyze(words) or self._all_words.analyze(words)
        return list(dict.fromkeys(terms))[:_MOST_TERMS]

    def _query(self, terms: Sequence[str]) -> "tantivy.Query":
        """Any of the terms in any of the fields. Built, not parsed: a user's text has no syntax."""
        kind, schema, should = self._tantivy.Query, self._index.schema, self._tantivy.Occur.Should
        wanted = [kind.term_query(schema, field, term, "freq") for term in terms for field in _FIELDS]
        return kind.boolean_query([(should, query) for query in wanted])


@asynccontextmanager
async def open_store(folder: Path) -> AsyncIterator[TantivyStore]:
    """Create or reopen the index in `folder`, and close it afterwards.

    Raises `CorpusError` if it is open elsewhere or cannot be read.
    """
    store = await asyncio.to_thread(_open, folder)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)


LEXICAL = LexicalBackend(name="tantivy", open=open_store)


def _open(folder: Path) -> TantivyStore:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return TantivyStore(folder)
    except ValueError as error:
        if "LockBusy" in str(error):
            raise CorpusError(f"The lexical index {str(folder)!r} is open elsewhere; close it there first.") from error
        raise CorpusError(f"The lexical index {str(folder)!r} cannot be opened; build it again. ({error})") from error


def _schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in _FIELDS:
        builder.add_text_field(field, tokenizer_name=_ANALYSER, index_option="freq")
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def _analyser(*, without: Sequence[str]) -> "tantivy.TextAnalyzer":
    """Lower case, no accents, stemmed (Snowball English); `without` are words dropped before stemming."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(64))
    builder = builder.filter(Filter.lowercase()).filter(Filter.ascii_fold())
    return builder.filter(Filter.custom_stopword(list(without))).filter(Filter.stemmer("english")).build()


@cache
def _stop_words() -> tuple[str, ...]:
    rows = yaml.safe_load(files(__package__).joinpath("stopwords.yaml").read_text("utf-8"))
    return tuple(word for row in rows for word in row)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()
