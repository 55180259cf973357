"""Zip archives used by document formats: their contents, and whether they are safe to open."""

import io
import zipfile
import zlib

from .document import Refused
from .parsers import File
from .text import fault_of

SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
_MOST_ENTRIES = 10_000
_MEGABYTE = 1024 * 1024
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError)


def contents(file: File) -> tuple[frozenset[str], str]:
    """The names of an archive's parts, and the kind that the part `mimetype` states; empty for other files."""
    if not file.content.startswith(SIGNATURES):
        return frozenset(), ""
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            names = frozenset(archive.namelist())
            if "mimetype" not in names:
                return names, ""
            with archive.open("mimetype") as part:
                return names, part.read(200).decode("ascii", "replace").strip()
    except (*_DAMAGED, RuntimeError):
        return frozenset(), ""


def opened(file: File) -> zipfile.ZipFile:
    """The archive. Refuses one that is damaged, encrypted, or unpacks to too much.

    The stated sizes suffice: `zipfile` never unpacks more of a part than is stated.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.content))
    except _DAMAGED as error:
        raise Refused("unreadable", f"the archive is damaged ({fault_of(error)})") from error
    entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise Refused("limit", f"it has more than {_MOST_ENTRIES} parts")
    if sum(entry.file_size for entry in entries) > file.unpacked_bytes:
        most = file.unpacked_bytes // _MEGABYTE
        raise Refused("limit", f"it unpacks to more than {most} MB; raise INGEST_FILE_MB")
    if any(entry.flag_bits & 1 for entry in entries):
        raise Refused("encrypted", "its parts are protected by a password; save it without one")
    return archive
