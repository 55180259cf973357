"""Ready-made passages: JSON lines `{"id", "title", "text"}`, optionally gzipped; a file may have any size."""

import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ..retrieval.passage import Passage
from .document import ReadFile, Refused
from .parsers import LONGEST_TITLE, ROW_SUFFIXES
from .sources import file_hash
from .text import clean, one_line

_GZIP = b"\x1f\x8b"
_MEGABYTE = 1024 * 1024
_LONGEST_ID = 512


def is_rows(path: Path) -> bool:
    """Whether a file has passages, by its name."""
    return path.name.lower().endswith(ROW_SUFFIXES)


def read_rows(path: Path, most_bytes: int) -> ReadFile:
    """The passages of a file, checked; they are read from it again at each iteration.

    `most_bytes` limits a line, and all of a packed file once unpacked. Raises `Refused` with the number of a bad line.
    """
    notes: list[str] = []
    count, words = 0, False
    with closing(sqlite3.connect("")) as seen:  # temporary, and on disk if it becomes large
        seen.execute("CREATE TABLE ids (id BLOB PRIMARY KEY) WITHOUT ROWID")
        for number, passage in _rows(path, most_bytes):
            key = passage.id.encode("utf-8", "surrogatepass")
            if seen.execute("INSERT OR IGNORE INTO ids VALUES (?)", (key,)).rowcount != 1:
                raise Refused("unreadable", f"line {number} repeats the id {passage.id!r}")
            words = words or any(map(str.isalnum, passage.text))
            if passage.text.strip():
                count += 1
            else:
                notes.append(f"line {number} has no text and was left out")
    if not words:
        raise Refused("no_text", "it contains no text")
    title = re.sub(r"\.(?:jsonl|ndjson)(?:\.gz)?$", "", path.name, flags=re.I) or path.name
    return ReadFile(
        title=one_line(title)[:LONGEST_TITLE],
        kind="passages",
        notes=tuple(notes),
        content_hash=file_hash(path),
        passages=_PassagesOfFile(path=path, most_bytes=most_bytes, count=count),
    )


@dataclass(frozen=True, kw_only=True)
class _PassagesOfFile(Collection[Passage]):
    """The passages with text of a file; each is a document of its own."""

    path: Path
    most_bytes: int
    count: int

    def __len__(self) -> int:
        return self.count

    def __contains__(self, passage: object) -> bool:
        return any(passage == one for one in self)

    def __iter__(self) -> Iterator[Passage]:
        return (passage for _, passage in _rows(self.path, self.most_bytes) if passage.text.strip())


def _rows(path: Path, most_bytes: int) -> Iterator[tuple[int, Passage]]:
    """All passages with the numbers of their lines, which end only at the newline byte. Raises `Refused`."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == _GZIP
            stream.seek(0)
            opened = gzip.GzipFile(fileobj=stream) if packed else stream
            number, left = 0, most_bytes
            while line := opened.readline(left + 1):
                number, left = number + 1, left - len(line)
                if left < 0:
                    what = "it unpacks to" if packed else "it has a line of"
                    limit = f"{what} more than {most_bytes // _MEGABYTE} MB; split it, or raise INGEST_FILE_MB"
                    raise Refused("limit", limit)
                left = left if packed else most_bytes
                if text := line.decode("utf-8", "replace").removeprefix("\ufeff").strip():
                    yield number, _passage(text, number)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Refused("unreadable", f"the gzip archive is damaged ({error})") from error
    except OSError as error:
        raise Refused("unreadable", f"it cannot be opened ({error.strerror})") from error


def _passage(line: str, number: int) -> Passage:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise Refused("unreadable", f"line {number} is not a JSON object with id, title and text")
    identity, title, text = row.get("id", row.get("_id")), row.get("title") or "", row.get("text")
    id_ = clean(str(identity)).strip() if type(identity) in {str, int} else ""
    if not 0 < len(id_) <= _LONGEST_ID:
        raise Refused("unreadable", f"the id in line {number} is not a text of 1 to {_LONGEST_ID} characters")
    if not isinstance(title, str) or not isinstance(text, str):
        raise Refused("unreadable", f"title or text in line {number} is not a text")
    return Passage(id=id_, doc_id=id_, title=one_line(title), text=clean(text))
