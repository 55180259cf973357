"""The contents of a corpus, in SQLite beside its indexes: documents, passages, vectors and names.

The indexes are built from the catalogue and can be rebuilt. A document is added in three steps, each
on disk before the next: its passages are *staged*, their vectors are added as they are computed, and
it is *published* once the indexes contain it. An interrupted edit is therefore either resumed (existing
vectors are not recomputed) or completed (`publishing` says which), and never half visible.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...text.names import mentioned, name_keys
from ..passage import Passage
from ..stores.rows import from_record, to_record
from ..vectors import FloatMatrix
from .database import Database
from .mentions import INSERT_MENTION, Named, mentions_of, mentions_with, prepare_mentions

FILE_NAME = "catalogue.sqlite"
NAMED_PASSAGES = 20
"""The number of passages of a document, counted from its first, that a mention of its name adds."""
AT_ONCE = 4096
"""The number of passages that are staged, written to the indexes and published together."""
_FORMER = ""
"""Owner of the passages that a document had when it is staged again; no document has this id."""
_REMEMBERED = 2000
"""Texts whose names are remembered: many questions find the same passages."""
ROWS = "passages"
"""The kind of a document whose passages are documents of their own."""
_SCHEMA = Path(__file__).with_name("catalogue.sql")


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


@dataclass(frozen=True, kw_only=True)
class Staged:
    """Some staged passages with their documents and vectors."""

    documents: tuple[str, ...]
    passages: tuple[Passage, ...]
    vectors: FloatMatrix


class Catalogue(Database):
    """The catalogue in one file. Many processes may read, one may write. Faults of the file raise `CorpusError`."""

    def __init__(self, file: Path, dimension: int) -> None:
        super().__init__(file)
        self._dimension = dimension
        self._mentioned: tuple[int, dict[str, tuple[str, ...]]] = (-1, {})
        with self._translated():
            if not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                self._connection.executescript(_SCHEMA.read_text(encoding="utf-8"))
            prepare_mentions(self._connection)

    # -- what is published

    def documents(self) -> tuple[DocumentRecord, ...]:
        """All published documents, by source and id."""
        rows = self._rows(
            "SELECT d.id, d.source, d.title, d.kind, d.content_hash, d.pages, d.aliases, COUNT(p.id) FROM documents d "
            "LEFT JOIN passages p ON p.document = d.id GROUP BY d.id ORDER BY d.source, d.id"
        )
        return tuple(_document(row) for row in rows)

    def titles(self) -> tuple[str, ...]:
        """The subjects of the published passages, without duplicates: their document's title, or their own."""
        rows = self._rows("SELECT json_extract(record, '$.title') AS title FROM passages GROUP BY title ORDER BY title")
        return tuple(title for (title,) in rows if title)

    def counts(self) -> tuple[int, int]:
        """The numbers of published (documents, passages)."""
        ((documents, passages),) = self._rows(
            "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM passages)"
        )
        return documents, passages

    def is_empty(self) -> bool:
        """Is nothing published and nothing staged?"""
        ((held,),) = self._rows(
            "SELECT EXISTS (SELECT 1 FROM documents) OR EXISTS (SELECT 1 FROM incoming_passages) "
            "OR EXISTS (SELECT 1 FROM incoming_documents WHERE publishing)"
        )
        return not held

    def checksum(self) -> str:
        """The `manifest.passages_checksum` over all published passages."""
        whole = hashlib.sha256()
        with self._translated():
            for (digest,) in self._connection.execute("SELECT digest FROM passages ORDER BY digest"):
                whole.update(digest)
        return whole.hexdigest()

    def owners(self, ids: Sequence[str]) -> dict[str, str]:
        """The document of each of these passages that is published, or staged in this edit."""
        staged = "SELECT id, document FROM incoming_passages WHERE id IN ({}) AND document IN " \
            "(SELECT id FROM incoming_documents WHERE NOT stale)"  # fmt: skip
        published = "SELECT id, document FROM passages WHERE id IN ({})"
        return {row[0]: row[1] for statement in (published, staged) for row in self._among(statement, ids)}

    def named(self, keys: Sequence[str]) -> dict[str, list[Named]]:
        """The passages with each of these names, in the order of their documents; unknown names are left out.

        If a title equals the name, titles that equal it only without their qualifier do not count.
        """
        statement = (
            "SELECT n.key, n.passage, n.doc, n.whole FROM names n JOIN passages p ON p.id = n.passage "
            "WHERE n.key IN ({}) ORDER BY p.rowid"
        )
        found: dict[str, list[Named]] = {}
        whole = set()
        for key, passage, doc, is_whole in self._among(statement, keys):
            if is_whole and key not in whole:
                whole.add(key)
                found[key] = []
            if is_whole or key not in whole:
                found.setdefault(key, []).append(Named(passage, doc))
        return found

    def mentioning(self, keys: Sequence[str], *, most: int) -> dict[str, list[Named]]:
        """The passages that contain each of these names (`proper_names`) in text or title.

        Names that occur in no passage, or in more than `most`, are left out.
        """
        with self._translated():
            return mentions_with(self._connection, keys, most=most)

    def version(self) -> int:
        """A number that changes whenever another connection has changed the file."""
        ((version,),) = self._rows("PRAGMA data_version")
        return int(version)

    def mentioned(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The names of passages that occur in each text (`text.names.mentioned`), remembered for some of them."""
        if (version := self.version()) != self._mentioned[0] or len(self._mentioned[1]) > _REMEMBERED:
            self._mentioned = version, {}
        known = self._mentioned[1]
        unseen = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(unseen, mentioned(unseen, self._known), strict=True))
        return [known[text] for text in texts]

    def _known(self, keys: Sequence[str]) -> frozenset[str]:
        return frozenset(row[0] for row in self._among("SELECT DISTINCT key FROM names WHERE key IN ({})", keys))

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The published passages among these ids, by id."""
        rows = self._among("SELECT id, record FROM passages WHERE id IN ({})", ids)
        return {row[0]: from_record(row[1]) for row in rows}

    def passages_of(self, document: str) -> tuple[Passage, ...]:
        """The published passages of a document in order; empty for an unknown document."""
        rows = self._rows("SELECT record FROM passages WHERE document = ? ORDER BY rowid", (document,))
        return tuple(from_record(row[0]) for row in rows)

    def ids_of(self, documents: Collection[str]) -> frozenset[str]:
        """The ids of the published passages of these documents."""
        rows = self._among("SELECT id FROM passages WHERE document IN ({})", sorted(documents))
        return frozenset(row[0] for row in rows)

    def vectors(self, ids: Sequence[str]) -> dict[str, FloatMatrix]:
        """The vectors of the published passages among these ids, by id; each of shape (dimension,)."""
        rows = self._among("SELECT id, vector FROM passages WHERE id IN ({})", ids)
        return {row[0]: np.frombuffer(row[1], dtype=np.float32) for row in rows}

    def everything(self, size: int) -> Iterator[tuple[list[Passage], FloatMatrix]]:
        """All published passages with their vectors, `size` at a time, by id."""
        last = ""
        statement = "SELECT id, record, vector FROM passages WHERE id > ? ORDER BY id LIMIT ?"
        while rows := self._rows(statement, (last, size)):
            last = rows[-1][0]
            yield [from_record(row[1]) for row in rows], self._matrix([row[2] for row in rows])

    # -- what comes in

    def begin(self) -> None:
        """Begin an edit: documents staged by an earlier one count only once they are staged again."""
        self._execute("UPDATE incoming_documents SET stale = 1 WHERE NOT publishing")

    def stage(self, document: DocumentRecord, passages: Iterable[Passage], *, removal: bool = False) -> int:
        """Stage the new contents of `document`; returns how many of its passages lack a vector.

        Vectors of unchanged passages are reused, from the published ones and from an interrupted edit. The passages
        are taken a few thousand at a time, however many there are. Raises `InputError` if two have the same id.
        """
        lacking = 0
        with self._transaction():
            self._execute("UPDATE incoming_passages SET document = ? WHERE document = ?", (_FORMER, document.id))
            self._execute("DELETE FROM incoming_documents WHERE id = ?", (document.id,))
            self._execute(
                "INSERT INTO incoming_documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)", (*_fields(document), removal)
            )
            left = iter(passages)
            while part := list(islice(left, AT_ONCE)):
                lacking += self._stage(document.id, part)
            self._execute("DELETE FROM incoming_passages WHERE document = ?", (_FORMER,))
        return lacking

    def _stage(self, document: str, passages: Sequence[Passage]) -> int:
        self._require_new_ids(document, [passage.id for passage in passages])
        records = {passage.id: to_record(passage) for passage in passages}
        vectors = self._known_vectors(records)
        self._drop_stale_passages(list(records))
        staged = [(id_, document, record, vectors.get(id_)) for id_, record in records.items()]
        self._many("INSERT INTO incoming_passages VALUES (?, ?, ?, ?)", staged)
        return len(records) - len(vectors)

    def _require_new_ids(self, document: str, ids: Sequence[str]) -> None:
        seen = {id_ for id_, count in Counter(ids).items() if count > 1}
        staged = self._among("SELECT id, document FROM incoming_passages WHERE id IN ({})", ids)
        seen.update(id_ for id_, owner in staged if owner == document)
        if seen:
            raise InputError(f"Two passages have the id {min(seen)!r}; ids must be unique.")

    def unencoded(self, count: int) -> list[Passage]:
        """Up to `count` passages of this edit without a vector, in the order of staging."""
        rows = self._rows(
            "SELECT p.record FROM incoming_passages p JOIN incoming_documents d ON d.id = p.document "
            "WHERE p.vector IS NULL AND NOT d.stale ORDER BY p.rowid LIMIT ?",
            (count,),
        )
        return [from_record(row[0]) for row in rows]

    def add_vectors(self, ids: Sequence[str], vectors: FloatMatrix) -> None:
        """Store the vectors of staged passages."""
        rows = [(row.tobytes(), id_) for id_, row in zip(ids, vectors, strict=True)]
        with self._transaction():
            self._many("UPDATE incoming_passages SET vector = ? WHERE id = ?", rows)

    def complete(self) -> tuple[str, ...]:
        """Staged documents of this edit whose passages all have vectors, and those being published."""
        rows = self._rows(
            "SELECT d.id FROM incoming_documents d WHERE publishing OR (NOT stale AND NOT EXISTS "
            "(SELECT 1 FROM incoming_passages p WHERE p.document = d.id AND p.vector IS NULL)) ORDER BY d.rowid"
        )
        return tuple(row[0] for row in rows)

    def interrupted(self) -> tuple[str, ...]:
        """Documents whose publication was started but not finished."""
        return tuple(row[0] for row in self._rows("SELECT id FROM incoming_documents WHERE publishing ORDER BY rowid"))

    def grouped(self, documents: Sequence[str], size: int) -> list[list[str]]:
        """These staged documents, in order, in groups of about `size` passages; documents are not split."""
        counts = dict(
            self._among(
                "SELECT document, COUNT(*) FROM incoming_passages WHERE document IN ({}) GROUP BY document", documents
            )
        )
        groups: list[list[str]] = []
        room = 0
        for document in documents:
            room -= counts.get(document, 0)
            if room <= 0 or not groups:
                groups.append([])
                room = size - counts.get(document, 0)
            groups[-1].append(document)
        return groups

    def publishing(self, documents: Sequence[str]) -> tuple[str, ...]:
        """Record that these documents are being published; returns the ids of passages that they no longer have."""
        with self._transaction():
            self._many("UPDATE incoming_documents SET publishing = 1 WHERE id = ?", [(id_,) for id_ in documents])
        old = self._among(
            "SELECT p.id FROM passages p LEFT JOIN incoming_passages i ON i.id = p.id AND i.document = p.document "
            "WHERE p.document IN ({}) AND i.id IS NULL ORDER BY p.id",
            documents,
        )
        return tuple(row[0] for row in old)

    def staged(self, documents: Sequence[str]) -> Iterator[Staged]:
        """The staged passages of a group from `grouped`, in order.

        They are one part, so that no document is half visible; only a file of rows, each of which is a document
        of its own, comes in several.
        """
        columns = "SELECT document, record, vector, rowid FROM incoming_passages"
        if len(documents) > 1 or not self._holds_rows(documents[0]):
            yield self._staged(self._among(f"{columns} WHERE document IN ({{}}) ORDER BY rowid", documents))
            return
        last = -1
        statement = f"{columns} WHERE document = ? AND rowid > ? ORDER BY rowid LIMIT ?"
        while (rows := self._rows(statement, (documents[0], last, AT_ONCE))) or last < 0:
            yield self._staged(rows)
            if not rows:
                return
            last = rows[-1][3]

    def _holds_rows(self, document: str) -> bool:
        found = self._rows("SELECT 1 FROM incoming_documents WHERE id = ? AND kind = ?", (document, ROWS))
        return bool(found)

    def _staged(self, rows: Sequence[tuple[Any, ...]]) -> Staged:
        return Staged(
            documents=tuple(row[0] for row in rows),
            passages=tuple(from_record(row[1]) for row in rows),
            vectors=self._matrix([row[2] for row in rows]),
        )

    def published(self, documents: Sequence[str]) -> None:
        """Record that the indexes contain the staged passages of these documents, and no others."""
        self._mentioned = (-1, {})
        with self._transaction():
            ids = [(id_,) for id_ in documents]
            for table in ("names", "mentions"):
                self._many(f"DELETE FROM {table} WHERE passage IN (SELECT id FROM passages WHERE document = ?)", ids)
            self._many("DELETE FROM passages WHERE document = ?", ids)
            self._many("DELETE FROM documents WHERE id = ?", ids)
            aliases: dict[str, tuple[str, ...]] = {}
            for id_ in documents:
                statement = "SELECT id, source, title, kind, content_hash, pages, aliases FROM incoming_documents " \
                    "WHERE id = ? AND NOT removal"  # fmt: skip
                for row in self._rows(statement, (id_,)):
                    aliases[id_] = tuple(json.loads(row[6]))
                    self._execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", tuple(row))
            named: Counter[str] = Counter()
            for part in self.staged(documents):
                self._insert(part, named, aliases)
                named = Counter({id_: named[id_] for id_ in documents})  # rows are documents of one passage each
            self._many("DELETE FROM incoming_passages WHERE document = ?", ids)
            self._many("DELETE FROM incoming_documents WHERE id = ?", ids)

    def forget_stale(self) -> None:
        """Delete what an earlier edit staged and this one did not stage again."""
        with self._transaction():
            self._execute(
                "DELETE FROM incoming_passages WHERE document IN (SELECT id FROM incoming_documents WHERE stale)"
            )
            self._execute("DELETE FROM incoming_documents WHERE stale")

    def _insert(self, staged: Staged, named: Counter[str], aliases: dict[str, tuple[str, ...]]) -> None:
        """Insert passages; `named` counts those of each document whose names were inserted, `aliases` are by owner."""
        passages: list[tuple[object, ...]] = []
        names: list[tuple[object, ...]] = []
        for owner, passage, vector in zip(staged.documents, staged.passages, staged.vectors, strict=True):
            record = to_record(passage)
            digest = hashlib.sha256(record.encode()).digest()
            passages.append((passage.id, owner, record, digest, vector.tobytes()))
            named[passage.doc_id] += 1
            if named[passage.doc_id] > NAMED_PASSAGES:
                continue
            for name in (passage.title, *aliases.get(owner, ())):
                names.extend((key.key, passage.id, passage.doc_id, key.whole) for key in name_keys(name))
        self._many("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", passages)
        self._many("INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?)", names)
        self._many(INSERT_MENTION, [row for passage in staged.passages for row in mentions_of(passage)])

    def _known_vectors(self, records: dict[str, str]) -> dict[str, bytes]:
        known: dict[str, bytes] = {}
        for table in ("passages", "incoming_passages"):
            statement = f"SELECT id, record, vector FROM {table} WHERE vector IS NOT NULL AND id IN ({{}})"
            rows = self._among(statement, list(records))
            known.update((row[0], row[2]) for row in rows if row[1] == records[row[0]])
        return known

    def _drop_stale_passages(self, ids: Sequence[str]) -> None:
        """Make room, because an interrupted edit may have staged the same ids, perhaps under another document."""
        self._many("DELETE FROM incoming_passages WHERE id = ?", [(id_,) for id_ in ids])

    def _matrix(self, rows: Sequence[bytes]) -> FloatMatrix:
        return np.frombuffer(b"".join(rows), dtype=np.float32).reshape(len(rows), self._dimension)


def _fields(document: DocumentRecord) -> tuple[object, ...]:
    plain = (document.id, document.source, document.title, document.kind, document.content_hash, document.pages)
    return (*plain, json.dumps(document.aliases))


def _document(row: tuple[Any, ...]) -> DocumentRecord:
    id_, source, title, kind, content_hash, pages, aliases, passages = row
    return DocumentRecord(
        id=id_, source=source, title=title, kind=kind, content_hash=content_hash, pages=pages,
        aliases=tuple(json.loads(aliases)), passages=passages,
    )  # fmt: skip
