"""Rows of a data file: a JSON list or JSON Lines, plain or gzipped, UTF-8 with or without a byte order mark."""

import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, cast

from ..errors import DataFileError

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_BLANK = " \t\r\n"


@dataclass(frozen=True, kw_only=True)
class RawRows:
    """Unparsed rows, each with its number from 1 (of the line, in JSON Lines); they may be read only once.

    `source` is the file's name without its folder, or the place on the hub. `sha256` is over the uncompressed bytes
    of a file, so that a gzipped copy counts as the same data. `revision` is the commit on the hub, if known.
    """

    rows: Iterable[tuple[int, object]]
    source: str
    sha256: str
    revision: str | None = None


def read_json_rows(path: Path) -> RawRows:
    """Open a file of rows, which are read one by one as they are asked for.

    Raises `DataFileError`, now or while the rows are read: a sentence with the file and, if one is at fault, the row.
    """
    with _opened(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # a gzip file has readinto
    return RawRows(rows=_rows(path), source=path.name, sha256=digest)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file
    except FileNotFoundError:
        raise DataFileError(f"There is no data file {str(path)!r}; check the path.") from None
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path.name} is not UTF-8 ({error.reason}); save it as UTF-8.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(f"{path.name} is a damaged gzip file ({error}); download it again.") from None
    except OSError as error:
        raise DataFileError(f"The data file {str(path)!r} cannot be read: {error.strerror}.") from None


def _rows(path: Path) -> Iterator[tuple[int, object]]:
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
        first = next((char for char in iter(lambda: text.read(1), "") if char not in _BLANK), "")
        if not first:
            raise DataFileError(f"{path.name} is empty; expected a JSON list or JSON Lines.")
        text.seek(0)
        count = 0
        for count, row in _listed(text, path) if first == "[" else _lines(text, path):  # used below
            yield count, row
        if not count:
            raise DataFileError(f"{path.name} contains no rows; expected at least one.")


def _listed(text: TextIO, path: Path) -> Iterator[tuple[int, object]]:
    """The values of a JSON list, of which only one and a chunk of the file are in memory at a time."""
    decoder, number = json.JSONDecoder(), 0
    buffer = text.read(_CHUNK).lstrip(_BLANK)[1:]
    while True:
        buffer = buffer.lstrip(_BLANK)
        try:
            if buffer[:1] == "]":
                if (buffer[1:] + text.read()).strip(_BLANK):
                    raise ValueError("extra data after the list")
                return
            value, end = decoder.raw_decode(buffer)
            rest = buffer[end:].lstrip(_BLANK)
            if rest[:1] not in (",", "]"):
                raise ValueError(f"expecting ',' or ']' after row {number + 1}")
        except (ValueError, RecursionError) as error:
            if more := text.read(_CHUNK):  # the row may only be incomplete
                buffer += more
                continue
            raise DataFileError(f"{path.name} is not JSON ({error}); check that it is complete.") from None
        number += 1
        yield number, value
        buffer = rest.removeprefix(",")


def _lines(text: TextIO, path: Path) -> Iterator[tuple[int, object]]:
    """Split only at newlines: `splitlines` would also split inside a text that contains U+0085 or U+2028."""
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == 1 and (found := _single_value(line + text.read())):
                raise DataFileError(
                    f"{path.name} contains a single JSON {found}; expected a list of rows, or one row per line."
                ) from None
            raise DataFileError(f"{path.name}: row {number}: expected one JSON object per line ({error}).") from None


def _single_value(text: str) -> str | None:
    """The kind of a text that is a single JSON value over several lines."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return "object" if isinstance(value, dict) else type(value).__name__
