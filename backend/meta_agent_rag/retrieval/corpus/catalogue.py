"""The contents of a corpus, in SQLite: documents, passages, vectors and names. Everything else is derived from it.

A passage has a row number, which is never used again, so two states of a corpus differ by the rows that only
one of them has. Vectors are kept by the digest of the text that was encoded: a text is encoded once, even if an
ingestion is interrupted and repeated. A document is visible with all of its passages or not at all.
"""

import hashlib
import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import CorpusError, InputError
from ...sqlite import use_write_ahead_log
from ...text.names import mentioned, name_keys, proper_names
from ..passage import Passage, from_record, to_record
from ..stores.store import Added
from ..vectors import FloatMatrix, Rows

FILE_NAME = "catalogue.sqlite"
NAMED_PASSAGES = 20
"""The number of passages of a document, counted from its first, that a mention of its name adds."""
AT_ONCE = 4096
"""The number of passages that are read or written together."""
ROWS = "passages"
"""The kind of a document whose passages are documents of their own."""
_REMEMBERED = 2000
"""Texts whose names are remembered: many questions find the same passages."""
_VARIABLES = 500
"""The most values in one statement."""
_SCHEMA = """
CREATE TABLE documents (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
    content_hash TEXT NOT NULL, pages INTEGER, aliases TEXT NOT NULL);
CREATE TABLE passages (
    row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, document TEXT NOT NULL, record TEXT NOT NULL,
    digest BLOB NOT NULL, first_page INTEGER, last_page INTEGER, section TEXT);
CREATE INDEX passages_of_document ON passages (document);
CREATE INDEX passages_on_page ON passages (first_page) WHERE first_page IS NOT NULL;
CREATE INDEX passages_in_section ON passages (section) WHERE section IS NOT NULL;
CREATE TABLE vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE names (key TEXT, passage TEXT, doc TEXT NOT NULL, whole INTEGER NOT NULL, PRIMARY KEY (key, passage))
    WITHOUT ROWID;
CREATE INDEX names_of_passage ON names (passage);
CREATE TABLE mentions (key TEXT, passage TEXT, doc TEXT NOT NULL, PRIMARY KEY (key, passage)) WITHOUT ROWID;
CREATE INDEX mentions_of_passage ON mentions (passage);
"""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DocumentRecord:
    """A document of a corpus. `source` says where it came from, `content_hash` is the hash of its bytes.

    `aliases` are further names of its subject; `passages` is counted by the catalogue.
    """

    id: str
    source: str
    title: str
    kind: str
    content_hash: str
    pages: int | None = None
    aliases: tuple[str, ...] = ()
    passages: int = 0


class NamedPassage(NamedTuple):
    """A passage that a name may refer to, or whose text contains it, and its document."""

    passage_id: str
    doc_id: str


class Catalogue:
    """The catalogue in one file. Many processes may read, one may write. Faults of the file raise `CorpusError`."""

    def __init__(self, file: Path, dimension: int) -> None:
        self._file = file
        self._dimension = dimension
        self._mentioned: tuple[int, dict[str, tuple[str, ...]]] = (-1, {})
        try:
            self._connection = sqlite3.connect(file, timeout=30.0, isolation_level=None, check_same_thread=False)
            use_write_ahead_log(self._connection, seconds=30.0)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                self._connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file; its write-ahead log is merged into it."""
        self._connection.close()

    # -- documents and passages

    def documents(self) -> tuple[DocumentRecord, ...]:
        """All documents, by source and id."""
        rows = self._rows(
            "SELECT d.id, d.source, d.title, d.kind, d.content_hash, d.pages, d.aliases, COUNT(p.id) FROM documents d "
            "LEFT JOIN passages p ON p.document = d.id GROUP BY d.id ORDER BY d.source, d.id"
        )
        return tuple(
            DocumentRecord(
                id=id_, source=source, title=title, kind=kind, content_hash=content_hash, pages=pages,
                aliases=tuple(json.loads(aliases)), passages=passages,
            )
            for id_, source, title, kind, content_hash, pages, aliases, passages in rows
        )  # fmt: skip

    def titles(self) -> tuple[str, ...]:
        """The subjects of the passages, without duplicates: their document's title, or their own."""
        rows = self._rows("SELECT json_extract(record, '$.title') AS title FROM passages GROUP BY title ORDER BY title")
        return tuple(title for (title,) in rows if title)

    def counts(self) -> tuple[int, int]:
        """The numbers of (documents, passages)."""
        ((documents, passages),) = self._rows(
            "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM passages)"
        )
        return documents, passages

    def edits(self) -> int:
        """The number of edits so far: the version of the contents."""
        ((edits,),) = self._rows("PRAGMA user_version")
        return int(edits)

    def owners(self, ids: Sequence[str]) -> dict[str, str]:
        """The document of each of these passages."""
        return dict(self._among("SELECT id, document FROM passages WHERE id IN ({})", ids))

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages with these ids, by id; unknown ids are left out."""
        found = self._among("SELECT id, record FROM passages WHERE id IN ({})", ids)
        return {id_: from_record(record) for id_, record in found}

    def passages_in(self, rows: Sequence[int]) -> dict[int, Passage]:
        """The passages in these rows, by row; rows that are gone are left out."""
        found = self._among("SELECT row, record FROM passages WHERE row IN ({})", rows)
        return {row: from_record(record) for row, record in found}

    def passages_of(self, document: str) -> tuple[Passage, ...]:
        """The passages of a document in order; empty for an unknown document."""
        rows = self._rows("SELECT record FROM passages WHERE document = ? ORDER BY row", (document,))
        return tuple(from_record(row[0]) for row in rows)

    def passages_on(self, page: int, documents: Sequence[str]) -> list[Passage]:
        """The passages on a page of these documents, in their order."""
        statement = "SELECT document, row, record FROM passages WHERE document IN ({}) AND first_page IS NOT NULL"
        rows = self._among(f"{statement} AND first_page <= {page:d} AND last_page >= {page:d}", documents)
        return _in_order(rows, documents)

    def passages_under(self, heading: str, documents: Sequence[str]) -> list[Passage]:
        """The passages of these documents in sections whose heading begins with `heading` as whole words, in order.

        Where headings are nested (`Chapter 3 > 3.1 Pumps`) or joined, any of them counts.
        """
        begins = rf"(^|[>|/;]\s*)(section\s+|\u00a7\s*)?{re.escape(heading)}(?![\w]|\.\d)"
        wanted = re.compile(begins, re.IGNORECASE)
        sections = self._rows("SELECT DISTINCT section FROM passages WHERE section IS NOT NULL")
        named = [section for (section,) in sections if wanted.search(section)]
        rows = self._among("SELECT document, row, record FROM passages WHERE section IN ({})", named)
        return _in_order([row for row in rows if row[0] in documents], documents)

    def rows(self) -> Rows:
        """The rows of all passages, ascending."""
        return np.array([row for (row,) in self._rows("SELECT row FROM passages ORDER BY row")], dtype=np.int64)

    def rows_of(self, documents: Collection[str]) -> Rows:
        """The rows of the passages of these documents, ascending."""
        rows = self._among("SELECT row FROM passages WHERE document IN ({})", sorted(documents))
        return np.array(sorted(row for (row,) in rows), dtype=np.int64)

    def vectors(self, ids: Sequence[str]) -> dict[str, FloatMatrix]:
        """The vectors of the passages with these ids, by id; each of shape (dimension,)."""
        statement = "SELECT p.id, v.vector FROM passages p JOIN vectors v ON v.digest = p.digest WHERE p.id IN ({})"
        return {row[0]: np.frombuffer(row[1], dtype=np.float32) for row in self._among(statement, ids)}

    def parts(self, rows: Rows | None = None) -> Iterator[Added]:
        """The passages in these rows, or all, with their vectors, some at a time, in order."""
        statement = (
            "SELECT p.row, p.record, v.vector FROM passages p JOIN vectors v ON v.digest = p.digest WHERE p.row IN ({})"
        )
        for part in in_parts((self.rows() if rows is None else rows).tolist(), AT_ONCE):
            found = sorted(self._among(statement, part))
            yield Added(
                np.array([row for row, _, _ in found], dtype=np.int64),
                [from_record(record) for _, record, _ in found],
                np.frombuffer(b"".join(vector for *_, vector in found), dtype=np.float32).reshape(-1, self._dimension),
            )

    # -- names, which links follow

    def named(self, keys: Sequence[str], *, most: int) -> dict[str, list[NamedPassage]]:
        """The passages with each of these names, in the order of their documents.

        Names of no document, or of more than `most`, are left out. If a title equals the name, titles that equal it
        only without their qualifier do not count.
        """
        statement = (
            "SELECT n.key, n.passage, n.doc, n.whole FROM names n JOIN passages p ON p.id = n.passage "
            "WHERE n.key IN ({}) ORDER BY p.row"
        )
        found: dict[str, list[NamedPassage]] = {}
        whole = set()
        for key, passage, doc, is_whole in self._among(statement, keys):
            if is_whole and key not in whole:
                whole.add(key)
                found[key] = []
            if is_whole or key not in whole:
                found.setdefault(key, []).append(NamedPassage(passage, doc))
        return {key: ones for key, ones in found.items() if len({one.doc_id for one in ones}) <= most}

    def mentioning(self, keys: Sequence[str], *, most: int) -> dict[str, list[NamedPassage]]:
        """The passages that contain each of these names (`proper_names`) in text or title.

        Names that occur in no passage, or in more than `most`, are left out.
        """
        statement = "SELECT passage, doc FROM mentions WHERE key = ? ORDER BY passage LIMIT ?"
        found = {key: [NamedPassage(*row) for row in self._rows(statement, (key, most + 1))] for key in keys}
        return {key: ones for key, ones in found.items() if 0 < len(ones) <= most}

    def mentioned(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The names of passages that occur in each text (`text.names.mentioned`), remembered for some of them."""
        if (edits := self.edits()) != self._mentioned[0] or len(self._mentioned[1]) > _REMEMBERED:
            self._mentioned = edits, {}
        known = self._mentioned[1]
        unseen = [text for text in dict.fromkeys(texts) if text not in known]
        statement = "SELECT DISTINCT key FROM names WHERE key IN ({})"
        found = mentioned(unseen, lambda keys: {key for (key,) in self._among(statement, keys)})
        known.update(zip(unseen, found, strict=True))
        return [known[text] for text in texts]

    # -- edits

    def unencoded(self, passages: Iterable[Passage]) -> Iterator[dict[bytes, str]]:
        """The texts among these passages without a vector, by digest, some thousand passages at a time."""
        for part in in_parts(passages, AT_ONCE):
            texts = {_digest(text): text for text in (passage.searchable() for passage in part)}
            known = self._among("SELECT digest FROM vectors WHERE digest IN ({})", list(texts))
            for (digest,) in known:
                del texts[digest]
            yield texts

    def add_vectors(self, digests: Sequence[bytes], vectors: FloatMatrix) -> None:
        """Store the vectors of texts."""
        rows = [(digest, row.tobytes()) for digest, row in zip(digests, vectors, strict=True)]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def replace(self, documents: Sequence[tuple[DocumentRecord, Iterable[Passage]]], removed: Sequence[str]) -> None:
        """Remove documents, then put others in the place of what they had; all at once.

        Every passage must have its vector. Raises `InputError` if two have the same id.
        """
        with self._transaction() as connection:
            for id_ in (*removed, *(document.id for document, _ in documents)):
                own = "(SELECT id FROM passages WHERE document = ?)"
                for table in (f"names WHERE passage IN {own}", f"mentions WHERE passage IN {own}"):
                    connection.execute(f"DELETE FROM {table}", (id_,))
                connection.execute("DELETE FROM passages WHERE document = ?", (id_,))
                connection.execute("DELETE FROM documents WHERE id = ?", (id_,))
            for document, passages in documents:
                plain = (document.id, document.source, document.title, document.kind, document.content_hash)
                values = (*plain, document.pages, json.dumps(document.aliases))
                connection.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", values)
                named: dict[str, int] = {}
                for part in in_parts(passages, AT_ONCE):
                    self._insert(document, part, named)
            connection.execute(f"PRAGMA user_version = {self.edits() + 1}")

    def forget_unused(self) -> None:
        """Delete the vectors of texts that no passage has."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM passages)")

    def _insert(self, document: DocumentRecord, passages: Sequence[Passage], named: dict[str, int]) -> None:
        """Insert passages; `named` counts those of each document whose names were inserted."""
        rows: list[tuple[object, ...]] = []
        names: list[tuple[object, ...]] = []
        mentions: list[tuple[object, ...]] = []
        for one in passages:
            place = (one.start_page, one.end_page or one.start_page, one.section)
            rows.append((one.id, document.id, to_record(one), _digest(one.searchable()), *place))
            named[one.doc_id] = named.get(one.doc_id, 0) + 1
            if named[one.doc_id] <= NAMED_PASSAGES:
                for name in (one.title, *document.aliases):
                    names += [(key.key, one.id, one.doc_id, key.whole) for key in name_keys(name)]
            mentioned_names = dict.fromkeys((*proper_names(one.title), *proper_names(one.text)))
            mentions += [(name, one.id, one.doc_id) for name in mentioned_names]
        columns = "id, document, record, digest, first_page, last_page, section"
        try:
            self._connection.executemany(f"INSERT INTO passages ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.IntegrityError:
            ids = [passage.id for passage in passages]
            taken = next(id_ for id_ in ids if ids.count(id_) > 1 or id_ in self.owners([id_]))
            raise InputError(f"Two passages have the id {taken!r}; ids must be unique.") from None
        self._connection.executemany("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?)", names)
        self._connection.executemany("INSERT OR IGNORE INTO mentions VALUES (?, ?, ?)", mentions)

    # -- statements

    def _among(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """The rows of a statement with `IN ({})`, for any number of values."""
        found = []
        for start in range(0, len(values), _VARIABLES):
            part = tuple(values[start : start + _VARIABLES])
            found += self._rows(statement.format(", ".join("?" * len(part))), part)
        return found

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection
            self._connection.execute("COMMIT")  # this is what fails on a full disk
        except BaseException as error:
            self._connection.rollback()
            if isinstance(error, sqlite3.DatabaseError):
                raise self._unusable(error) from error
            raise

    def _unusable(self, error: sqlite3.DatabaseError) -> CorpusError:
        return CorpusError(
            f"The catalogue {str(self._file)!r} cannot be used ({error}); free disk space or fix its permissions, "
            "or drop the corpus and ingest it again."
        )


def _in_order(rows: Iterable[tuple[Any, ...]], documents: Sequence[str]) -> list[Passage]:
    places = {document: place for place, document in enumerate(documents)}
    ordered = sorted((places[document], row, record) for document, row, record in rows)
    return [from_record(record) for _, _, record in ordered]


def in_parts(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
