"""Where rows wait on this machine until the database has them; a kill loses none.

Layout: `<data_dir>/audit/slot-N/{lock, live.jsonl}` for each process, and `<data_dir>/audit/waiting/*.jsonl`, files
that nobody writes any more. Whoever takes them to the database removes them; twice does no harm there.
"""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import StorageError
from ...journal import Journal
from ..inquiry import new_id
from .rows import Row

_LIVE = "live.jsonl"
_MOST_SLOTS = 256


@dataclass(kw_only=True)
class Spool:
    """One process's place in the spool, held until it ends."""

    folder: Path
    slot: Path
    lock: sqlite3.Connection
    _journal: Journal | None = field(default=None, repr=False)

    def append(self, row: Row) -> None:
        """Keep a row; raises `StorageError`. It outlives this process as soon as this returns."""
        if self._journal is None:
            self._journal = Journal(self.slot / _LIVE)
        self._journal.append(row)

    def waiting(self) -> list[Path]:
        """Closed files with rows for the database, oldest first; this process's live one is closed for it."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            _hand_over(self.slot, self.folder)
        return sorted((self.folder / "waiting").glob("*.jsonl"))

    def close(self) -> None:
        """Leave the place to another process; what is in it waits for the database."""
        self.waiting()
        self.lock.close()


def open_spool(folder: Path) -> Spool:
    """Take a place in the spool; what ended processes left live is made to wait for the database."""
    try:
        (folder / "waiting").mkdir(parents=True, exist_ok=True)
        own: tuple[Path, sqlite3.Connection] | None = None
        for number in range(_MOST_SLOTS):
            slot = folder / f"slot-{number}"
            if own is not None and not slot.exists():
                return Spool(folder=folder, slot=own[0], lock=own[1])
            slot.mkdir(exist_ok=True)
            lock = locked(slot)
            if lock is None:
                continue
            _hand_over(slot, folder)
            if own is None:
                own = (slot, lock)
            else:
                lock.close()
    except OSError as error:
        raise StorageError(f"{str(folder)!r} cannot be written ({error}); make room, or set MARAG_DATA_DIR.") from None
    raise StorageError(f"All {_MOST_SLOTS} places of {str(folder)!r} are taken; end some of the processes.")


def _hand_over(slot: Path, folder: Path) -> None:
    live = slot / _LIVE
    if live.exists():
        live.rename(folder / "waiting" / f"{new_id()}.jsonl")


def locked(folder: Path) -> sqlite3.Connection | None:
    """The slot's lock, which the end of a process frees; `None` where another one has it."""
    connection = sqlite3.connect(folder / "lock", timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        connection.close()
        return None
    return connection
