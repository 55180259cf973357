"""The names in the texts of a corpus, whether or not they are titles, as a table of the catalogue."""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ...text.names import proper_names
from ..passage import Passage
from ..stores.rows import from_record

INSERT_MENTION = "INSERT OR IGNORE INTO mentions VALUES (?, ?, ?)"
_SCHEMA = (
    "CREATE TABLE mentions (key TEXT, passage TEXT, doc TEXT NOT NULL, PRIMARY KEY (key, passage)) WITHOUT ROWID",
    "CREATE INDEX mentions_of_passage ON mentions (passage)",
)
_MADE = "SELECT 1 FROM sqlite_master WHERE name = 'mentions'"


class Named(NamedTuple):
    """A passage that a name may refer to, or whose text contains it, and its document."""

    passage_id: str
    doc_id: str


def prepare_mentions(connection: sqlite3.Connection) -> None:
    """Create the table if missing, as in catalogues of earlier versions, and fill it from their passages."""
    if connection.execute(_MADE).fetchone():
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute(_MADE).fetchone():  # another process may have created it
            for statement in _SCHEMA:
                connection.execute(statement)
            for (record,) in connection.execute("SELECT record FROM passages"):
                connection.executemany(INSERT_MENTION, mentions_of(from_record(record)))
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def mentions_of(passage: Passage) -> list[tuple[str, str, str]]:
    """The rows of a passage, one per name."""
    names = dict.fromkeys((*proper_names(passage.title), *proper_names(passage.text)))
    return [(name, passage.id, passage.doc_id) for name in names]


def mentions_with(connection: sqlite3.Connection, keys: Sequence[str], *, most: int) -> dict[str, list[Named]]:
    """The passages of each name that occurs in 1 to `most` passages."""
    statement = "SELECT passage, doc FROM mentions WHERE key = ? ORDER BY passage LIMIT ?"
    found = {key: [Named(*row) for row in connection.execute(statement, (key, most + 1))] for key in keys}
    return {key: ones for key, ones in found.items() if 0 < len(ones) <= most}
