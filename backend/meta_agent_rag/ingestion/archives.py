"""Zip archives used by document formats: their contents, and whether they are safe to open."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from .document import Refused
from .parsers import File
from .text import fault_of

SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_ENTRIES = 10_000
_MOST_PACKED = 100
"""The highest compression ratio of a part over 1 MB; a handbook of 872 pages reaches 18."""
_MEGABYTE = 1024 * 1024
_MOST_KIND = 200
"""The most bytes that are read of the entry `mimetype`."""


def contents(file: File) -> tuple[frozenset[str], str]:
    """The names of an archive's parts, and the kind that the part `mimetype` states; empty for other files."""
    if not file.content.startswith(SIGNATURES):
        return frozenset(), ""
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            names = frozenset(entry.filename for entry in archive.infolist())
            if "mimetype" not in names:
                return names, ""
            with archive.open("mimetype") as part:
                return names, part.read(_MOST_KIND).decode("ascii", "replace").strip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError, RuntimeError):
        return frozenset(), ""


@contextmanager
def opened(file: File) -> Iterator[zipfile.ZipFile]:
    """The archive. Refuses one that is damaged, encrypted, or unpacks to too much, as declared or in fact."""
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES:
                raise Refused("limit", f"it has more than {_MOST_ENTRIES} parts")
            left = file.unpacked_bytes
            if sum(entry.file_size for entry in entries) > left:
                raise _too_large(file)
            for entry in entries:
                left -= _unpacked_size(archive, entry, left, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise Refused("unreadable", f"the archive is damaged ({fault_of(error)})") from error
    except RuntimeError as error:  # zipfile's way of asking for a password
        raise Refused("encrypted", "its parts are protected by a password; save it without one") from error
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        yield archive


def _unpacked_size(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, file: File) -> int:
    size = 0
    with archive.open(entry) as stream:
        while part := stream.read(_MEGABYTE):
            size += len(part)
            if size > most:
                raise _too_large(file)
    if size > max(_MEGABYTE, _MOST_PACKED * entry.compress_size):
        raise Refused("limit", f"its part {entry.filename!r} has a higher compression ratio than text can have")
    return size


def _too_large(file: File) -> Refused:
    return Refused("limit", f"it unpacks to more than {file.unpacked_bytes // _MEGABYTE} MB; raise INGEST_FILE_MB")
