"""A record of an embedded index's files at its last close.

The engines keep no checksums of vectors, codes and field norms: an overwritten one would silently change
search results. While an index is open, and after a kill, there is no seal.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .damage import unreadable
from .ownership import FILE_NAME as MARK

FILE_NAME = "seal.json"
_CHUNK = 1 << 20
_EMPTY = bytes(_CHUNK)


class Sealed(NamedTuple):
    """A file's size in bytes, its modification time in nanoseconds, and its CRC-32."""

    size: int
    changed: int
    checksum: int


def break_seal(folder: Path) -> Mapping[str, Sealed]:
    """Compare the files with their seal, and remove it; returns its contents, empty if there is none.

    Files with the same size and time are not read. Raises `DamagedIndexError`.
    """
    known = _read(folder / FILE_NAME)
    for name, was in known.items():
        try:
            now = _sealed(folder / name, was)
        except OSError as error:
            raise unreadable(folder, f"{name}: {error.strerror}") from error
        if (now.size, now.checksum) != (was.size, was.checksum):
            raise unreadable(folder, f"{name} was changed from outside")
    with suppress(OSError):
        (folder / FILE_NAME).unlink()
    return known


def is_sealed(folder: Path) -> bool:
    """Are the files those of the last close, by size and time? Reads and changes no index files."""
    known = _read(folder / FILE_NAME)
    try:
        now = {name: (folder / name).stat() for name in known}
    except OSError:
        return False
    return bool(known) and all(
        (now[name].st_size, now[name].st_mtime_ns) == (was.size, was.changed) for name, was in known.items()
    )


def seal(folder: Path, known: Mapping[str, Sealed]) -> None:
    """Record the state of the files; unchanged ones in `known` are not read. Without disk space there is no seal."""
    new = folder / f"{FILE_NAME}.new"
    with suppress(OSError):
        files = {name: _sealed(folder / name, known.get(name)) for name in sorted(_files(folder))}
        new.write_text(json.dumps(files), encoding="utf-8")
        new.replace(folder / FILE_NAME)


def _files(folder: Path) -> Iterator[str]:
    """Names of the engine's files in the folder, except lock files."""
    for path in folder.rglob("*"):
        own = path.parent == folder and path.name.removesuffix(".new") in {FILE_NAME, MARK}
        if path.is_file() and not own and path.suffix != ".lock":
            yield path.relative_to(folder).as_posix()


def _read(file: Path) -> dict[str, Sealed]:
    try:
        return {name: Sealed(*map(int, sealed)) for name, sealed in json.loads(file.read_text("utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _sealed(file: Path, was: Sealed | None) -> Sealed:
    status = file.stat()
    if was is not None and (was.size, was.changed) == (status.st_size, status.st_mtime_ns):
        return was
    return Sealed(status.st_size, status.st_mtime_ns, _checksum(file))


def _checksum(file: Path) -> int:
    """The checksum of all data except zeros: the engines reserve much more space than they use."""
    checksum, at = 0, 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            if chunk != _EMPTY[: len(chunk)]:
                checksum = zlib.crc32(chunk, zlib.crc32(at.to_bytes(8), checksum))
            at += len(chunk)
    return checksum
