"""What is known of each uploaded document, kept on disk so that a restart forgets nothing.

Layout of `<data_dir>/uploads/`: `.incoming/<id>/` while it comes, `.waiting/<id>/` until it is taken in,
`.records/<id>.json` what became of it, `<corpus>/` the originals of what a corpus holds.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ..request_record import new_id

State: TypeAlias = Literal["queued", "parsing", "indexed", "failed", "deleted"]
_FOLDER = "uploads"
UNFINISHED: tuple[State, ...] = ("queued", "parsing")


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A document that a client sent. `message` is one sentence: why it failed, or what is worth knowing.

    `passages` counts those that it brought; `at` is the moment of its arrival, seconds since the epoch.
    """

    id: str
    client_id: str
    corpus: str
    name: str
    at: float
    state: State = "queued"
    message: str | None = None
    passages: int = 0


@dataclass(frozen=True, kw_only=True)
class UploadFolder:
    """The folder of all uploads; a corpus cannot have a name that begins with a dot."""

    path: Path

    @classmethod
    def below(cls, data_dir: Path) -> "UploadFolder":
        """That of a data folder."""
        return cls(path=data_dir / _FOLDER)

    def start(self) -> Path:
        """A new folder for one file that is about to come; its name is the id of the upload."""
        folder = self.path / ".incoming" / new_id()
        folder.mkdir(parents=True)
        return folder

    def accept(self, arrived: Path, upload: Upload) -> None:
        """Have a file that has come wait for its turn. Raises `OSError`."""
        self.keep(upload)
        waiting = self.path / ".waiting"
        waiting.mkdir(exist_ok=True)
        arrived.rename(waiting / upload.id)

    def keep(self, upload: Upload) -> None:
        """Write the record, whole or not at all. Raises `OSError`."""
        file = self._record(upload.id)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(upload)), encoding="utf-8")
        new.replace(file)

    def read(self, id_: str) -> Upload | None:
        """The record of an upload; `None` if it is missing or not one of ours."""
        try:
            return Upload(**json.loads(self._record(id_).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def waiting(self) -> list[Upload]:
        """Uploads that were not taken in yet, the oldest first."""
        return sorted((found for found in self._waiting() if found), key=lambda upload: upload.id)

    def file(self, upload: Upload) -> Path:
        """The file that waits."""
        return self.path / ".waiting" / upload.id / upload.name

    def original(self, upload: Upload) -> Path:
        """Where the file stays once it is in the corpus."""
        return self.path / upload.corpus / upload.name

    def settle(self, upload: Upload) -> None:
        """Keep what became of an upload: its original where it is indexed, and nothing of it where it failed.

        What is interrupted here can be done again at any time.
        """
        self.keep(upload)
        if upload.state == "indexed":
            original = self.original(upload)
            original.parent.mkdir(parents=True, exist_ok=True)
            if self.file(upload).exists():
                os.replace(self.file(upload), original)
        shutil.rmtree(self.file(upload).parent, ignore_errors=True)

    def clear(self, older_than_seconds: float) -> None:
        """Remove what uploads left that never came to their end."""
        for folder in (self.path / ".incoming").glob("*"):
            with suppress(FileNotFoundError):  # another process has just finished it
                if time.time() - folder.stat().st_mtime > older_than_seconds:
                    shutil.rmtree(folder, ignore_errors=True)

    def of(self, client_id: str) -> list[Upload]:
        """The records of what a client sent."""
        found = (self.read(file.stem) for file in (self.path / ".records").glob("*.json"))
        return [upload for upload in found if upload is not None and upload.client_id == client_id]

    def is_replaced(self, upload: Upload) -> bool:
        """Has a later upload of any client replaced this one in its corpus?"""
        found = (self.read(file.stem) for file in (self.path / ".records").glob("*.json"))
        return any(
            other is not None
            and (other.corpus, other.name, other.state) == (upload.corpus, upload.name, "indexed")
            and (other.at, other.id) > (upload.at, upload.id)
            for other in found
        )

    def drop(self, upload: Upload) -> None:
        """Remove a record, and the file where it still waits; what a corpus holds stays."""
        shutil.rmtree(self.file(upload).parent, ignore_errors=True)
        self._record(upload.id).unlink(missing_ok=True)

    def forget(self, older_than_seconds: float) -> None:
        """Remove the records of uploads that came to their end so long ago; what they brought stays."""
        for file in (self.path / ".records").glob("*.json"):
            with suppress(FileNotFoundError):  # another process was faster
                if time.time() - file.stat().st_mtime > older_than_seconds:
                    upload = self.read(file.stem)
                    if upload is not None and upload.state not in UNFINISHED:
                        file.unlink()

    def _waiting(self) -> Iterator[Upload | None]:
        for folder in (self.path / ".waiting").glob("*"):
            yield self.read(folder.name)

    def _record(self, id_: str) -> Path:
        return self.path / ".records" / f"{id_}.json"
