"""Embedded indexes whose files are damaged: how that shows, and what is said of it."""

from pathlib import Path

from ...errors import DamagedIndexError
from .protocols import StorePlace


def is_panic(error: BaseException | None) -> bool:
    """Is it a broken assumption of an engine written in Rust? The class cannot be imported."""
    return type(error).__name__ == "PanicException"


def damaged(folder: Path, why: object) -> DamagedIndexError:
    """The error for an index that its engine cannot read."""
    return DamagedIndexError(
        f"The index {str(folder)!r} is damaged; remove that folder, and it is made again. ({str(why)[:300]})"
    )


def require_whole(place: StorePlace, held: int) -> None:
    """Raise `DamagedIndexError` where an index holds another number of passages than it must."""
    if place.passages is not None and held != place.passages:
        raise damaged(place.folder, f"it holds {held} of {place.passages} passages")
