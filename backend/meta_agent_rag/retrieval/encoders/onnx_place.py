"""The places of exported encoders, and whether an export still matches its model."""

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
"""The version of the export format; increasing it causes all exports to be recreated."""

_EXPORTERS = ("onnx", "onnxruntime", "sentence-transformers", "torch", "transformers")
_PARTS = {".json", ".txt", ".model", ".py", ".safetensors", ".bin"}
_READ_WHOLE_BYTES = 4_000_000
_ABANDONED_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class ExportPlace:
    """`<data_dir>/encoders/<model>-<hash of its files>`: a complete export of the model in `source`, or nothing."""

    path: Path
    source: Path

    @property
    def ready(self) -> bool:
        """Does an export exist? It appears atomically."""
        return (self.path / FACTS_FILE).is_file()

    @property
    def _refusal_file(self) -> Path:
        return self.path.with_name(f"{self.path.name}.refused.json")

    def refusal(self) -> str | None:
        """The reason why this model cannot be exported with these library versions; `None` if it may be tried."""
        try:
            noted = json.loads(self._refusal_file.read_text(encoding="utf-8"))
            return str(noted["reason"]) if noted["versions"] == _versions() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def refuse(self, reason: str) -> None:
        """Record that an export should not be retried until a library changes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        noted = json.dumps({"reason": reason, "versions": _versions()}, indent=2)
        self._refusal_file.write_text(noted, encoding="utf-8")

    @contextmanager
    def building(self) -> Iterator[Path]:
        """A private build folder, removed at the end unless it was installed."""
        home = self.path.parent
        home.mkdir(parents=True, exist_ok=True)
        for left in home.glob(f".{self.path.name}.*"):
            with suppress(OSError):  # another process may have just finished its export
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=home))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def install(self, built: Path) -> None:
        """Move a finished build into its place; if another process was first, its export is kept."""
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
        """Remove an unreadable export."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _remove_earlier(self) -> None:
        """Remove exports of earlier contents of the same model folder; processes that have one open keep it."""
        for other in self.path.parent.glob(f"{self.path.name.rpartition('-')[0]}-*"):
            if other != self.path and (other / FACTS_FILE).is_file() and _source(other) == str(self.source):
                shutil.rmtree(other, ignore_errors=True)


def export_place(name: str, folder: Path, data_dir: Path) -> ExportPlace:
    """The place for an export of the encoder `name` in `folder`; it changes whenever the files change."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).name).strip(".-")[:48] or "encoder"
    return ExportPlace(path=data_dir / "encoders" / f"{readable}-{_fingerprint(folder)}", source=folder)


def _source(export: Path) -> str | None:
    try:
        return read_facts(export).source
    except StorageError:
        return None


def _fingerprint(folder: Path) -> str:
    """A hash of small files' contents, and of the size and time of weights, which take too long to read."""
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
