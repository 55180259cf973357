"""The passages of one file: in memory if they are few, else in a temporary file."""

import tempfile
import zlib
from collections.abc import Collection, Iterator
from typing import Any

from ..errors import StorageError
from ..retrieval.passage import Passage, from_record, to_record

IN_MEMORY = 4096
"""More passages than this are kept in a temporary file (in TMPDIR)."""


class Spool(Collection[Passage]):
    """Passages in order, which may be iterated several times, one iteration at a time.

    The file is deleted with this object. A copy for another process carries its content, compressed.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 # open as long as this object exists
        self._count = 0

    def __del__(self) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Passage]:
        self._file.seek(0)
        for line in self._file:
            yield from_record(line.decode("ascii"))

    def __contains__(self, passage: object) -> bool:
        return any(passage == one for one in self)

    def __reduce__(self) -> tuple[Any, ...]:
        self._file.seek(0)
        return _copied, (zlib.compress(self._file.read(), 1), self._count)

    def add(self, passage: Passage) -> None:
        """Append a passage; not while iterating. Raises `StorageError` if the disk is full."""
        try:
            self._file.write(to_record(passage).encode("ascii") + b"\n")
        except OSError as error:
            raise StorageError(
                f"The rows of a file cannot be kept in the temporary folder ({error.strerror}); free disk space, or "
                "set TMPDIR to another disk."
            ) from error
        self._count += 1


def collected(passages: Iterator[Passage]) -> Collection[Passage]:
    """All passages: a tuple, or a spool if they are many."""
    few: list[Passage] = []
    for passage in passages:
        few.append(passage)
        if len(few) > IN_MEMORY:
            break
    else:
        return tuple(few)
    spool = Spool()
    for passage in few:
        spool.add(passage)
    few.clear()
    for passage in passages:
        spool.add(passage)
    return spool


def _copied(content: bytes, count: int) -> Spool:
    spool = Spool()
    spool._file.write(zlib.decompress(content))
    spool._count = count
    return spool
