"""Damaged files of embedded indexes: detection and error messages."""

import errno
import re
from pathlib import Path

from ...errors import CorpusError, DamagedIndexError
from .protocols import StorePlace

_FILE_IS_GONE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}


def is_panic(error: BaseException | None) -> bool:
    """Is it a panic of an engine written in Rust? The class cannot be imported."""
    return type(error).__name__ == "PanicException"


def unreadable(folder: Path, why: object) -> CorpusError:
    """The error for an index that its engine cannot read.

    A `DamagedIndexError`, unless the system refuses access: if permission, memory or file handles are lacking, an
    index must not be rebuilt.
    """
    reason = str(why)[:300]
    refused = re.search(r"os error (\d+)", str(why))
    if refused is not None and int(refused[1]) not in _FILE_IS_GONE:
        return CorpusError(
            f"The index {str(folder)!r} cannot be read; fix the cause reported by the system. ({reason})"
        )
    return DamagedIndexError(f"The index {str(folder)!r} is damaged; remove that folder to have it rebuilt. ({reason})")


def require_whole(place: StorePlace, held: int) -> None:
    """Raise `DamagedIndexError` if an index does not hold the expected number of passages."""
    if place.passages is not None and held != place.passages:
        raise unreadable(place.folder, f"it holds {held} of {place.passages} passages")
