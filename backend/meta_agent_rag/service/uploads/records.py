"""The records of uploaded documents, kept on disk so that they survive a restart.

Layout of `<data_dir>/uploads/`: `.incoming/<id>/` while it arrives, `.waiting/<id>/` until it is processed,
`.records/<id>.json` for its result, `<corpus>/<client>/` for the originals of the documents in a corpus.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from ..request_record import new_id

State: TypeAlias = Literal["queued", "parsing", "indexed", "failed", "replaced", "deleted"]
_FOLDER = "uploads"
_REPLACED = "A later upload of the same name by this key replaced it."
UNFINISHED: tuple[State, ...] = ("queued", "parsing")


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A document sent by a client. `message` is one sentence: why it failed, or a note.

    `passages` counts the passages it added; `at` is the time of its arrival, in seconds since the epoch.
    """

    id: str
    client_id: str
    corpus: str
    name: str
    at: float
    state: State = "queued"
    message: str | None = None
    passages: int = 0

    @property
    def place(self) -> tuple[str, str, str]:
        """What identifies its document: a later upload to the same place replaces it; other keys have other places."""
        return self.corpus, self.client_id, self.name


@dataclass(frozen=True, kw_only=True)
class UploadFolder:
    """The folder of all uploads; corpus names cannot begin with a dot."""

    path: Path

    @classmethod
    def below(cls, data_dir: Path) -> "UploadFolder":
        """The upload folder of a data folder."""
        return cls(path=data_dir / _FOLDER)

    def start(self) -> Path:
        """A new folder for a file about to arrive; its name is the id of the upload."""
        folder = self.path / ".incoming" / new_id()
        folder.mkdir(parents=True)
        return folder

    def accept(self, arrived: Path, upload: Upload) -> None:
        """Queue a file that has arrived. Raises `OSError`."""
        self.keep(upload)
        waiting = self.path / ".waiting"
        waiting.mkdir(exist_ok=True)
        arrived.rename(waiting / upload.id)

    def keep(self, upload: Upload) -> None:
        """Write the record atomically. Raises `OSError`."""
        file = self._record(upload.id)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(upload)), encoding="utf-8")
        new.replace(file)

    def read(self, id_: str) -> Upload | None:
        """The record of an upload; `None` if it is missing or invalid."""
        try:
            return Upload(**json.loads(self._record(id_).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def waiting(self) -> list[Upload]:
        """Unprocessed uploads, oldest first."""
        return sorted(self._found(".waiting/*"), key=lambda upload: upload.id)

    def file(self, upload: Upload) -> Path:
        """The waiting file."""
        return self.path / ".waiting" / upload.id / upload.name

    def original(self, upload: Upload) -> Path:
        """The place of the file once it is in the corpus."""
        return self.path / upload.corpus / upload.client_id / upload.name

    def settle(self, upload: Upload) -> None:
        """Record the result of an upload: keep its original if it was indexed, delete it if it failed.

        Can be repeated at any time after an interruption.
        """
        self.keep(upload)
        if upload.state == "indexed":
            original = self.original(upload)
            original.parent.mkdir(parents=True, exist_ok=True)
            if self.file(upload).exists():
                os.replace(self.file(upload), original)
        shutil.rmtree(self.file(upload).parent, ignore_errors=True)

    def clear(self, older_than_seconds: float) -> None:
        """Remove the remains of uploads that were never completed."""
        for folder in (self.path / ".incoming").glob("*"):
            with suppress(FileNotFoundError):  # another process just finished it
                if time.time() - folder.stat().st_mtime > older_than_seconds:
                    shutil.rmtree(folder, ignore_errors=True)

    def of(self, client_id: str) -> list[Upload]:
        """The records of a client's uploads."""
        return [upload for upload in self._found(".records/*.json") if upload.client_id == client_id]

    def is_replaced(self, upload: Upload) -> bool:
        """Has a later upload by the same client replaced this one in its corpus?"""
        return any(
            (*other.place, other.state) == (*upload.place, "indexed") and (other.at, other.id) > (upload.at, upload.id)
            for other in self._found(".records/*.json")
        )

    def current(self, corpus: str) -> dict[tuple[str, str, str], Upload]:
        """The latest upload at each place in a corpus that is indexed or still to be read."""
        live = [
            upload
            for upload in self._found(".records/*.json")
            if upload.corpus == corpus and upload.state in {"indexed", *UNFINISHED}
        ]
        return {upload.place: upload for upload in sorted(live, key=lambda upload: (upload.at, upload.id))}

    def mark_replaced(self) -> None:
        """Give indexed uploads that a later one of the same name has replaced that state. Raises `OSError`."""
        indexed = (upload for upload in self._found(".records/*.json") if upload.state == "indexed")
        latest: dict[tuple[str, str, str], Upload] = {}
        for upload in sorted(indexed, key=lambda upload: (upload.at, upload.id)):
            earlier = latest.get(upload.place)
            if earlier is not None:
                self.keep(replace(earlier, state="replaced", message=_REPLACED, passages=0))
            latest[upload.place] = upload

    def note_indexed(self, upload: Upload, passages: int) -> None:
        """A copy that was without a document now has one with this number of passages. Raises `OSError`."""
        self.keep(replace(upload, message=None, passages=passages))

    def drop(self, upload: Upload) -> None:
        """Remove a record, and the file if it is still waiting; indexed content is kept."""
        shutil.rmtree(self.file(upload).parent, ignore_errors=True)
        self._record(upload.id).unlink(missing_ok=True)

    def forget(self, older_than_seconds: float) -> None:
        """Remove the records of uploads that ended that long ago; their documents are kept."""
        for file in (self.path / ".records").glob("*.json"):
            with suppress(FileNotFoundError):  # another process removed it
                if time.time() - file.stat().st_mtime > older_than_seconds:
                    upload = self.read(file.stem)
                    if upload is not None and upload.state not in UNFINISHED:
                        file.unlink()

    def _found(self, pattern: str) -> Iterator[Upload]:
        return filter(None, (self.read(path.stem) for path in self.path.glob(pattern)))

    def _record(self, id_: str) -> Path:
        return self.path / ".records" / f"{id_}.json"
