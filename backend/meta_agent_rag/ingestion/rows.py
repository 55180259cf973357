"""Ready-made passages: JSON lines `{"id", "title", "text"}`, optionally gzipped; a file may have any size."""

import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing
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
    """Whether a file has passages by its name, or by its first line. Raises `OSError`."""
    with path.open("rb") as stream:
        head = stream.read(_MEGABYTE)
    if path.name.lower().endswith(ROW_SUFFIXES) or head.startswith(_GZIP):
        return True
    try:
        row = json.loads(head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and isinstance(row.get("text"), str) and ("id" in row or "_id" in row)


def read_rows(path: Path, most_bytes: int) -> ReadFile:
    """The passages of a file, checked; they are read from it again at each iteration.

    `most_bytes` limits a line, and all of a packed file once unpacked. Raises `Refused` with the number of a bad line.
    """
    passages = _Rows(path, most_bytes)
    notes: list[str] = []
    words = False
    with closing(sqlite3.connect("")) as seen:  # temporary, and on disk if it becomes large
        seen.execute("CREATE TABLE ids (id BLOB PRIMARY KEY) WITHOUT ROWID")
        for number, passage in passages.numbered():
            key = passage.id.encode("utf-8", "surrogatepass")
            if seen.execute("INSERT OR IGNORE INTO ids VALUES (?)", (key,)).rowcount != 1:
                raise Refused("unreadable", f"line {number} repeats the id {passage.id!r}")
            words = words or any(map(str.isalnum, passage.text))
            if passage.text.strip():
                passages.count += 1
            else:
                notes.append(f"line {number} has no text and was left out")
    if not words:
        raise Refused("no_text", "it contains no text")
    title = re.sub(r"\.(?:jsonl|ndjson)(?:\.gz)?$|\.gz$", "", path.name, flags=re.I) or path.name
    return ReadFile(
        title=one_line(title)[:LONGEST_TITLE],
        kind="passages",
        notes=tuple(notes),
        content_hash=file_hash(path),
        passages=passages,
    )


class _Rows(Collection[Passage]):
    """The passages with text of a file; each is a document of its own."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most = most_bytes
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __contains__(self, passage: object) -> bool:
        return any(passage == one for one in self)

    def __iter__(self) -> Iterator[Passage]:
        return (passage for _, passage in self.numbered() if passage.text.strip())

    def numbered(self) -> Iterator[tuple[int, Passage]]:
        """All passages with the numbers of their lines. Raises `Refused`."""
        for number, line in enumerate(self._lines(), start=1):
            if line.strip():
                yield number, _passage(line, number)

    def _lines(self) -> Iterator[str]:
        """Lines, split only at the newline byte."""
        try:
            with self._path.open("rb") as stream:
                packed = stream.read(2) == _GZIP
                stream.seek(0)
                opened = gzip.GzipFile(fileobj=stream) if packed else stream
                left = self._most
                while line := opened.readline(left + 1):
                    left -= len(line)
                    if left < 0:
                        what = "it unpacks to" if packed else "it has a line of"
                        raise Refused(
                            "limit", f"{what} more than {self._most // _MEGABYTE} MB; split it, or raise INGEST_FILE_MB"
                        )
                    left = left if packed else self._most
                    yield line.decode("utf-8", "replace").removeprefix("\ufeff")
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
        foreign = number == 1 and not line.lstrip().startswith(("{", "["))
        raise Refused(
            "type" if foreign else "unreadable", f"line {number} is not a JSON object with id, title and text"
        )
    identity, title, text = row.get("id", row.get("_id")), row.get("title") or "", row.get("text")
    identity = str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity
    if not isinstance(identity, str) or not identity.strip() or len(identity) > _LONGEST_ID:
        raise Refused("unreadable", f"the id in line {number} is not a text of 1 to {_LONGEST_ID} characters")
    if not isinstance(title, str) or not isinstance(text, str):
        raise Refused("unreadable", f"title or text in line {number} is not a text")
    id_ = clean(identity).strip()
    return Passage(id=id_, doc_id=id_, title=one_line(title), text=clean(text))
