"""Rows of a data file: a JSON list or JSON Lines, plain or gzipped, UTF-8 with or without a byte order mark."""

import codecs
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataFileError

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class RawRows:
    """Unparsed rows, each with its number from 1 (of the line, in JSON Lines).

    `source` is the file's name without its folder, or the place on the hub. `sha256` is over the uncompressed bytes
    of a file, so that a gzipped copy counts as the same data. `revision` is the commit on the hub, if known.
    """

    rows: tuple[tuple[int, object], ...]
    source: str
    sha256: str
    revision: str | None = None


def read_json_rows(path: Path) -> RawRows:
    """Read a file of rows.

    Raises `DataFileError`: one sentence with the file and, if one is at fault, the row.
    """
    content = _content(path)
    text = _text(content, path)
    if not text.strip():
        raise DataFileError(f"{path.name} is empty; expected a JSON list or JSON Lines.")
    rows = tuple(_listed(text, path) if text.lstrip().startswith("[") else _lines(text, path))
    if not rows:
        raise DataFileError(f"{path.name} contains no rows; expected at least one.")
    return RawRows(rows=rows, source=path.name, sha256=hashlib.sha256(content).hexdigest())


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    except FileNotFoundError:
        raise DataFileError(f"There is no data file {str(path)!r}; check the path.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(f"{path.name} is a damaged gzip file ({error}); download it again.") from None
    except OSError as error:
        raise DataFileError(f"The data file {str(path)!r} cannot be read: {error.strerror}.") from None


def _text(content: bytes, path: Path) -> str:
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path.name} is not UTF-8 at byte {error.start}; save it as UTF-8.") from None


def _listed(text: str, path: Path) -> Iterator[tuple[int, object]]:
    try:
        rows: list[object] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path.name} is not JSON ({error}); check that it is complete.") from None
    return enumerate(rows, start=1)


def _lines(text: str, path: Path) -> Iterator[tuple[int, object]]:
    """Split only at newlines: `splitlines` would also split inside a text that contains U+0085 or U+2028."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == 1 and (found := _single_value(text)):
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
