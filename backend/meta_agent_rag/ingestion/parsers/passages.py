"""Ready-made passages: JSON lines `{"id", "title", "text"}`, optionally gzipped."""

import gzip
import io
import json
import re
import sqlite3
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace

from ..document import Document, PassageRow, RefusalKind, Refused
from ..text import clean, is_wide
from . import File, Parser

GZIP = b"\x1f\x8b"
_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_FIRST_ROW_BYTES = 1024 * 1024
_LONGEST_ID = 512
_MEGABYTE = 1024 * 1024


def _recognises(file: File) -> bool:
    if file.content.startswith(GZIP):
        return True
    if file.text is None:
        return False
    return file.ends_with(_SUFFIXES) or _is_row(file.content[:_FIRST_ROW_BYTES].lstrip().split(b"\n", 1)[0])


def _is_row(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and isinstance(row.get("text"), str) and ("id" in row or "_id" in row)


def _parse(file: File) -> Document:
    wide = is_wide(file.content)  # a row begins with {
    content = (file.text or "").encode("utf-8", "replace") if wide else file.content
    rows: list[PassageRow] = []
    return replace(_kept(_rows(file, io.BytesIO(content)), rows), rows=tuple(rows))


def _kept(rows: Generator[PassageRow, None, Document], kept: list[PassageRow]) -> Document:
    while True:
        try:
            kept.append(next(rows))
        except StopIteration as end:
            document: Document = end.value
            return document


def _rows(file: File, stream: io.RawIOBase | io.BytesIO) -> Generator[PassageRow, None, Document]:
    """Each row with text; then the document without rows. `file` may be the beginning of the stream."""
    notes: list[str] = []
    with closing(sqlite3.connect("")) as seen:  # temporary, and on disk if it becomes large
        seen.execute("CREATE TABLE ids (id BLOB PRIMARY KEY) WITHOUT ROWID")
        for number, line in enumerate(_lines(file, stream), start=1):
            if not line.strip():
                continue
            row = _row(line, number)
            if not _add(seen, row.id, new=bool(row.text.strip())):
                raise Refused("unreadable", f"line {number} repeats the id {row.id!r}")
            if row.text.strip():
                yield row
            else:
                notes.append(f"line {number} has no text and was left out")
    title = re.sub(r"\.(?:jsonl|ndjson)(?:\.gz)?$|\.gz$", "", file.name, flags=re.I) or file.name
    return Document(title=title, kind="passages", notes=tuple(notes))


def _add(seen: sqlite3.Connection, id_: str, *, new: bool) -> bool:
    """Is the id unknown? It becomes known if it is `new`."""
    key = id_.encode("utf-8", "surrogatepass")
    if new:
        return seen.execute("INSERT OR IGNORE INTO ids VALUES (?)", (key,)).rowcount == 1
    return seen.execute("SELECT 1 FROM ids WHERE id = ?", (key,)).fetchone() is None


def _lines(file: File, stream: io.RawIOBase | io.BytesIO) -> Iterator[str]:
    """Lines, split only at the newline byte. Only packed content is limited: it may unpack to any multiple."""
    packed = file.content.startswith(GZIP)
    most = file.unpacked_bytes
    left = most
    try:
        with _opened(stream, packed=packed) as opened:
            while line := opened.readline(left + 1):
                left -= len(line)
                if left < 0 and packed:
                    raise Refused(
                        "limit", f"it unpacks to more than {most // _MEGABYTE} MB; split it, or raise INGEST_FILE_MB"
                    )
                if left < 0:
                    raise Refused("limit", f"it has a line of more than {most // _MEGABYTE} MB; raise INGEST_FILE_MB")
                left = left if packed else most
                yield line.decode("utf-8", "replace").removeprefix("\ufeff")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Refused("unreadable", f"the gzip archive is damaged ({error})") from error


def _opened(stream: io.RawIOBase | io.BytesIO, *, packed: bool) -> io.BufferedIOBase:
    if packed:
        return gzip.GzipFile(fileobj=stream)
    return stream if isinstance(stream, io.BytesIO) else io.BufferedReader(stream, _MEGABYTE)


def _row(line: str, number: int) -> PassageRow:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        foreign = number == 1 and not line.lstrip().startswith("{")
        raise _no_row(number, "type" if foreign else "unreadable") from error
    if not isinstance(row, dict):
        raise _no_row(number, "unreadable")
    identity, title, text = row.get("id", row.get("_id")), row.get("title") or "", row.get("text")
    identity = str(identity) if isinstance(identity, int) and not isinstance(identity, bool) else identity
    if not isinstance(identity, str) or not identity.strip() or len(identity) > _LONGEST_ID:
        raise Refused("unreadable", f"the id in line {number} is not a text of 1 to {_LONGEST_ID} characters")
    if not isinstance(title, str) or not isinstance(text, str):
        raise Refused("unreadable", f"title or text in line {number} is not a text")
    return PassageRow(id=clean(identity).strip(), title=title, text=text)


def _no_row(number: int, kind: RefusalKind) -> Refused:
    return Refused(kind, f"line {number} is not a JSON object with id, title and text")


PARSER = Parser(kind="passages", suffixes=_SUFFIXES, priority=1, recognises=_recognises, parse=_parse, rows=_rows)
