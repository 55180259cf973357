"""BM25 over titles and texts, on disk, with tantivy.

tantivy scores a term t of a query in a field f as BM25 with k1 = 1.2 and b = 0.75 (its constants, which
cannot be changed here), idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)); a passage's score is the sum over
terms and over the two fields, both with weight 1. Removed or replaced passages still count
in n and N until tantivy merges them away, so scores may shift a little after the next open.

An update is one atomic commit, which searches see immediately.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CorpusError
from ...text.normalise import encodable
from ...text.words import stop_words
from ..passage import Found, Passage
from .damage import is_panic, require_whole, unreadable
from .ownership import claim, dropper, settle
from .protocols import LexicalBackend, StorePlace
from .rows import Row, best_rows, from_key, from_record, latest, to_key, to_record
from .seal import break_seal, seal

if TYPE_CHECKING:
    import tantivy

_NAME = "tantivy"
_FIELDS = ("title", "text")
_ANALYSER = "english"
_WRITER_BYTES = 50_000_000
_PAGE = 4096
_MOST_TERMS = 1024
"""The most distinct terms of a query that are searched; a longer query is truncated."""


class TantivyStore:
    """A `LexicalStore`; get one from `open_store`."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        import tantivy

        self._tantivy = tantivy
        self._folder = folder
        self._index = tantivy.Index(_schema(), str(folder))
        self._all_words = _analyser(without=())
        self._content_words = _analyser(without=stop_words())
        self._index.register_tokenizer(_ANALYSER, self._all_words)
        # Opened immediately: its lock keeps a second process out.
        self._writer = None if read_only else self._index.writer(_WRITER_BYTES, num_threads=1)
        self._writing = threading.Lock()

    async def update(self, passages: Sequence[Passage], *, removed: Sequence[str] = ()) -> None:
        """Delete and index in one commit (about 90 ms): pass many at once."""
        if passages or removed:
            await asyncio.to_thread(self._update, passages, removed)

    async def search(self, text: str, k: int, *, among: Collection[str] | None = None) -> list[Found]:
        """The k best passages; empty for a query without words."""
        with self._reading():
            rows = self._search(text, k, among)  # a millisecond or two: a thread would cost as much
        return [Found(passage=from_record(row.record), score=row.score, lexical=row.score) for row in rows]

    async def scan(self) -> AsyncIterator[Passage]:
        """Every passage, read in pages of one snapshot of the index."""
        searcher = self._index.searcher()
        for offset in range(0, searcher.num_docs, _PAGE):
            with self._reading():
                page = await asyncio.to_thread(self._page, searcher, offset)
            for passage in page:
                yield passage

    def held(self) -> int:
        """The number of passages."""
        return int(self._index.searcher().num_docs)

    def close(self) -> None:
        """Finish merging and release the lock."""
        with self._writing:
            if self._writer is not None:
                self._writer.wait_merging_threads()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if isinstance(error, ValueError) or is_panic(error):
                raise unreadable(self._folder, error) from error
            raise

    def _update(self, passages: Sequence[Passage], removed: Sequence[str]) -> None:
        positions, gone = latest(passages, removed)
        assert self._writer is not None, "opened read-only"
        with self._writing:
            try:
                for passage_id in [*gone, *(passages[position].id for position in positions)]:
                    self._writer.delete_documents_by_term("id", to_key(passage_id))
                for position in positions:
                    self._writer.add_document(self._document(passages[position]))
                self._writer.commit()
            except BaseException as error:
                self._writer.rollback()
                if isinstance(error, ValueError):  # the library has no exception class
                    raise CorpusError(f"The lexical index {str(self._folder)!r} cannot be written: {error}") from error
                raise
            self._index.reload()

    def _document(self, passage: Passage) -> "tantivy.Document":
        texts = {"title": encodable(passage.title), "text": encodable(passage.text)}
        return self._tantivy.Document(id=to_key(passage.id), **texts, record=to_record(passage).encode())

    def _search(self, text: str, k: int, among: Collection[str] | None) -> list[Row]:
        terms = self._terms(text)
        if not terms or (among is not None and not among):
            return []
        query = self._query(terms, among)
        searcher = self._index.searcher()

        def fetch(limit: int) -> list[Row]:
            hits = searcher.search(query, limit, count=False).hits
            documents = [(score, searcher.doc(address)) for score, address in hits]
            return [Row(score, from_key(one["id"][0]), one["record"][0].decode()) for score, one in documents]

        return best_rows(fetch, k)

    def _page(self, searcher: "tantivy.Searcher", offset: int) -> list[Passage]:
        hits = searcher.search(self._tantivy.Query.all_query(), _PAGE, count=False, offset=offset).hits
        return [from_record(searcher.doc(address)["record"][0].decode()) for _, address in hits]

    def _terms(self, text: str) -> list[str]:
        """Distinct analysed words; function words count only if there are no others ("The Who")."""
        words = encodable(text)
        terms = self._content_words.analyze(words) or self._all_words.analyze(words)
        return list(dict.fromkeys(terms))[:_MOST_TERMS]

    def _query(self, terms: Sequence[str], among: Collection[str] | None) -> "tantivy.Query":
        """Any of the terms in any of the fields. Built, not parsed, because a user's text has no syntax."""
        kind, schema, occur = self._tantivy.Query, self._index.schema, self._tantivy.Occur
        wanted = [kind.term_query(schema, field, term, "freq") for term in terms for field in _FIELDS]
        query = kind.boolean_query([(occur.Should, one) for one in wanted])
        if among is None:
            return query
        allowed = kind.term_set_query(schema, "id", [to_key(passage_id) for passage_id in among])
        return kind.boolean_query([(occur.Must, query), (occur.Must, kind.const_score_query(allowed, 0.0))])


@asynccontextmanager
async def open_store(place: StorePlace) -> AsyncIterator[TantivyStore]:
    """Create or reopen the index in the place's folder, and close it afterwards.

    Raises `CorpusError` if it is open elsewhere or was not created by this package, `DamagedIndexError` if it
    is unreadable or incomplete.
    """
    known = await asyncio.to_thread(break_seal, place.folder)
    store = await asyncio.to_thread(_open, place)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)
        if not place.read_only:
            await asyncio.to_thread(seal, place.folder, known)


LEXICAL = LexicalBackend(name=_NAME, open=open_store, drop=dropper(_NAME))


def _open(place: StorePlace) -> TantivyStore:
    folder = place.folder
    claim(folder, _NAME)
    try:
        store = TantivyStore(folder, read_only=place.read_only)
    except BaseException as error:
        if "LockBusy" in str(error):
            raise CorpusError(f"The lexical index {str(folder)!r} is open elsewhere; close it there first.") from error
        if isinstance(error, ValueError) or is_panic(error):
            raise unreadable(folder, error) from error
        raise
    try:
        require_whole(place, store.held())
    except BaseException:
        store.close()
        raise
    settle(folder, _NAME)
    return store


def _schema() -> "tantivy.Schema":
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in _FIELDS:
        builder.add_text_field(field, tokenizer_name=_ANALYSER, index_option="freq")
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def _analyser(*, without: Sequence[str]) -> "tantivy.TextAnalyzer":
    """Lower case, no accents, stemmed (Snowball English); the words in `without` are dropped before stemming."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(64))
    builder = builder.filter(Filter.lowercase()).filter(Filter.ascii_fold())
    return builder.filter(Filter.custom_stopword(list(without))).filter(Filter.stemmer("english")).build()
