"""Where exported encoders lie, and whether one still belongs to the model that it was made from."""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ...errors import StorageError
from .model_config import module_folders
from .onnx_encoder import FACTS_FILE, read_facts

_FORMAT = 1
"""Raise it when an export's files change their meaning; all exports are then made again."""

_EXPORTERS = ("onnx", "onnxruntime", "sentence-transformers", "torch", "transformers")
_PARTS = {".json", ".txt", ".model", ".py", ".safetensors", ".bin"}
_READ_WHOLE_BYTES = 4_000_000
_ABANDONED_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class ExportPlace:
    """`<data_dir>/encoders/<model>-<hash of its files>`: a whole export of the model in `source`, or nothing."""

    path: Path
    source: Path

    @property
    def ready(self) -> bool:
        """Is there an export? It appears at once and whole."""
        return (self.path / FACTS_FILE).is_file()

    @property
    def _refusal_file(self) -> Path:
        return self.path.with_name(f"{self.path.name}.refused.json")

    def refusal(self) -> str | None:
        """Why this model was not exported with these versions of the libraries, `None` if it may be tried."""
        try:
            noted = json.loads(self._refusal_file.read_text(encoding="utf-8"))
            return str(noted["reason"]) if noted["versions"] == _versions() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def refuse(self, reason: str) -> None:
        """Note that an export is not to be tried again until a library changes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        noted = json.dumps({"reason": reason, "versions": _versions()}, indent=2)
        self._refusal_file.write_text(noted, encoding="utf-8")

    @contextmanager
    def building(self) -> Iterator[Path]:
        """A folder of one's own to build in, removed at the end if it was not installed."""
        home = self.path.parent
        home.mkdir(parents=True, exist_ok=True)
        for left in home.glob(f".{self.path.name}.*"):
            with suppress(OSError):  # another process may just have finished its own
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=home))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def install(self, built: Path) -> None:
        """Put a finished build in its place; where another process was first, its export stays."""
        for file in built.iterdir():
            with file.open("r+b") as opened:
                os.fsync(opened.fileno())
        try:
            built.rename(self.path)
        except OSError:
            if not self.ready:
                raise
        self._remove_earlier()

    def discard(self) -> None:
        """Remove an export that cannot be read."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _remove_earlier(self) -> None:
        """Remove exports of earlier contents of the same model folder; who has one open keeps it."""
        for other in self.path.parent.glob(f"{self.path.name.rpartition('-')[0]}-*"):
            if other != self.path and (other / FACTS_FILE).is_file() and _source(other) == str(self.source):
                shutil.rmtree(other, ignore_errors=True)


def export_place(name: str, folder: Path, data_dir: Path) -> ExportPlace:
    """The place for an export of the encoder `name` in `folder`; another one whenever its files change."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name).strip(".-")[:48] or "encoder"
    return ExportPlace(path=data_dir / "encoders" / f"{readable}-{_fingerprint(folder)}", source=folder)


def _source(export: Path) -> str | None:
    try:
        return read_facts(export).source
    except StorageError:
        return None


def _fingerprint(folder: Path) -> str:
    """Small files count with their content, weights with their size and time: reading them takes too long."""
    digest = hashlib.sha256(str(_FORMAT).encode())
    for file in sorted(_files(folder)):
        status = file.stat()
        digest.update(b"\0" + os.fsencode(file.relative_to(folder)) + f"\0{status.st_size}\0".encode())
        whole = status.st_size <= _READ_WHOLE_BYTES
        digest.update(file.read_bytes() if whole else str(status.st_mtime_ns).encode())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> set[Path]:
    try:
        places = {place for _, place in module_folders(folder)}
    except (OSError, ValueError, KeyError, TypeError):
        places = set()
    found = (file for place in {folder, *places} if place.is_dir() for file in place.iterdir())
    return {file for file in found if file.suffix in _PARTS and file.is_file()}


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _EXPORTERS}
