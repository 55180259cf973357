"""Ready-made passages: JSON lines `{"id", "title", "text"}`, optionally gzipped."""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator

from ..document import Document, PassageRow, RefusalKind, Refused
from ..text import clean
from . import File, Parser

_GZIP = b"\x1f\x8b"
_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_FIRST_ROW_BYTES = 1024 * 1024
_LONGEST_ID = 512
_MEGABYTE = 1024 * 1024


def _recognises(file: File) -> bool:
    if file.content.startswith(_GZIP):
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
    rows: dict[str, PassageRow] = {}
    notes: list[str] = []
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        row = _row(line, number)
        if row.id in rows:
            raise Refused("unreadable", f"line {number} repeats the id {row.id!r}")
        if row.text.strip():
            rows[row.id] = row
        else:
            notes.append(f"line {number} has no text and was left out")
    title = re.sub(r"\.(?:jsonl|ndjson)(?:\.gz)?$|\.gz$", "", file.name, flags=re.I) or file.name
    return Document(title=title, kind="passages", rows=tuple(rows.values()), notes=tuple(notes))


def _lines(file: File) -> Iterator[str]:
    """Lines, split only at the newline byte; unpacked while reading, up to the limit."""
    try:
        with _opened(file) as stream:
            left = file.unpacked_bytes
            while line := stream.readline(left + 1):
                left -= len(line)
                if left < 0:
                    most = file.unpacked_bytes // _MEGABYTE
                    raise Refused("limit", f"it unpacks to more than {most} MB; split it, or raise INGEST_FILE_MB")
                yield line.decode("utf-8", "replace").removeprefix("\ufeff")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise Refused("unreadable", f"the gzip archive is damaged ({error})") from error


def _opened(file: File) -> io.BufferedIOBase:
    if file.content.startswith(_GZIP):
        return gzip.GzipFile(fileobj=io.BytesIO(file.content))
    wide = b"\0" in file.content[:4]  # UTF-16 and UTF-32 are detected early: a row begins with {
    return io.BytesIO((file.text or "").encode("utf-8", "replace") if wide else file.content)


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


PARSER = Parser(kind="passages", suffixes=_SUFFIXES, priority=1, recognises=_recognises, parse=_parse)
