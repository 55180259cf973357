"""Rows waiting on this machine until the database has them; they survive a kill.

Layout: `<data_dir>/audit/slot-N/{lock, live.jsonl, *.jsonl}` for each process, and `<data_dir>/audit/waiting/*.jsonl`
for the leftovers of ended processes. A process first moves a file into its own slot, so that no other takes it,
and removes it once its rows are in the database: at any moment a row is in a file or in the database.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import StorageError
from ...journal import Journal
from ..request_record import new_id
from .rows import Row

_LIVE = "live.jsonl"
_MOST_SLOTS = 256


@dataclass(kw_only=True)
class Spool:
    """One process's slot in the spool, held until the process ends."""

    folder: Path
    slot: Path
    lock: FileLock
    _journal: Journal | None = field(default=None, repr=False)

    def append(self, row: Row) -> None:
        """Append a row durably: it survives this process once this returns. Raises `StorageError`."""
        if self._journal is None:
            self._journal = Journal(self.slot / _LIVE)
        self._journal.append(row)

    def take(self) -> list[Path]:
        """Closed files with rows for the database, oldest first, reserved for this process."""
        self._finish()
        for file in (self.folder / "waiting").glob("*.jsonl"):
            with suppress(FileNotFoundError):  # another process was faster
                file.rename(self.slot / file.name)
        return sorted(file for file in self.slot.glob("*.jsonl") if file.name != _LIVE)

    def close(self) -> None:
        """Release the slot to another process; its rows wait for the database."""
        self._finish()
        _hand_over(self.slot, self.folder)
        self.lock.release()

    def _finish(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            (self.slot / _LIVE).rename(self.slot / f"{new_id()}.jsonl")


def open_spool(folder: Path) -> Spool:
    """Take a slot in the spool; live files of ended processes are queued for the database."""
    try:
        (folder / "waiting").mkdir(parents=True, exist_ok=True)
        own: tuple[Path, FileLock] | None = None
        for number in range(_MOST_SLOTS):
            slot = folder / f"slot-{number}"
            if own is not None and not slot.exists():
                return Spool(folder=folder, slot=own[0], lock=own[1])
            slot.mkdir(exist_ok=True)
            lock = FileLock(slot / "lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            _hand_over(slot, folder)
            if own is None:
                own = (slot, lock)
            else:
                lock.release()
    except OSError as error:
        raise StorageError(
            f"{str(folder)!r} cannot be written ({error}); free disk space, or set MARAG_DATA_DIR."
        ) from None
    raise StorageError(f"All {_MOST_SLOTS} slots of {str(folder)!r} are in use; stop some of the processes.")


def _hand_over(slot: Path, folder: Path) -> None:
    for file in slot.glob("*.jsonl"):
        name = f"{new_id()}.jsonl" if file.name == _LIVE else file.name
        file.rename(folder / "waiting" / name)
