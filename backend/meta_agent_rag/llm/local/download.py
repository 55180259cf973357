"""Downloads a listed model from the Hugging Face hub: complete and verified, or not at all."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ...errors import RefusedError, StorageError, TransientError, UnreachableError
from ...extras import require
from ...settings import Settings
from .catalogue import LocalModel

_SPARE_BYTES = 100_000_000
"""The disk space that a download leaves free."""
_ANSWER_SECONDS = 10.0


def fetch(model: LocalModel, settings: Settings) -> Path:
    """Download a model, with a progress bar on a terminal; returns its path.

    A partial download is kept next to it, and the next attempt continues it. The file gets its name once its SHA-256
    matches the one that the hub states. Raises `UnreachableError`, `RefusedError`, `TransientError` (wrong
    checksum), `StorageError` (disk) or `MissingExtraError`.
    """
    require("embedded", "`marag models get`")
    path = model.path(settings)
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=0):
            _fetch(model, path, settings.hf_token.get_secret_value() if settings.hf_token else None)
    except Timeout:
        raise StorageError(f"Another process is downloading {model.name!r}; wait until it is done.") from None
    return path


def _fetch(model: LocalModel, path: Path, token: str | None) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get  # its `hf_hub_download` starts over after an interruption

    url = hf_hub_url(model.repository, model.file, revision=model.revision)
    with _hub_errors(model):
        stated = get_hf_file_metadata(url, token=token, timeout=_ANSWER_SECONDS).etag
    if stated != model.sha256:  # for files in LFS, as all weights are, the ETag is the SHA-256
        raise RefusedError(
            f"The hub does not state the SHA-256 for {model.file} that this version expects, so nothing was "
            "downloaded; check HF_ENDPOINT, or set EMBEDDED_MODEL_PATH to a GGUF file that you trust."
        )
    part = path.with_name(f"{path.name}.{model.sha256[:12]}.part")
    there = part.stat().st_size if part.is_file() else 0
    _require_room(model, path.parent, model.bytes - there)
    if there < model.bytes:
        with part.open("ab") as file, _hub_errors(model):
            http_get(
                url,
                file,
                resume_size=there,
                headers={"authorization": f"Bearer {token}"} if token else None,
                displayed_filename=model.name,
            )
    with part.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if got != model.sha256:
        part.unlink()
        raise TransientError(
            f"The download of {model.name!r} does not have the SHA-256 that the hub states and was deleted; run "
            f"`marag models get {model.name}` again."
        )
    part.replace(path)


def _require_room(model: LocalModel, folder: Path, missing: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < missing + _SPARE_BYTES:
        raise StorageError(
            f"{str(folder)!r} has {free / 1e9:.1f} GB free, but {model.name!r} needs another "
            f"{(missing + _SPARE_BYTES) / 1e9:.1f} GB; free disk space, or set MARAG_DATA_DIR to another disk."
        )


@contextmanager
def _hub_errors(model: LocalModel) -> Iterator[None]:
    """Translate errors of the hub's client into this package's errors."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    elsewhere = f"download {model.file} of {model.repository} elsewhere and set EMBEDDED_MODEL_PATH to it"
    lost = UnreachableError(
        f"The Hugging Face hub ({constants.ENDPOINT}) does not respond; run `marag models get {model.name}` again, "
        f"which continues where it stopped, or {elsewhere}."
    )
    try:
        yield
    except HfHubHTTPError as error:
        raise RefusedError(
            f"The hub rejected the request for {model.file} of {model.repository} ({error.response.status_code}); "
            f"check HF_TOKEN, or {elsewhere}."
        ) from error
    except OSError as error:
        if isinstance(error, ConnectionError | TimeoutError) or error.errno is None:
            raise lost from error
        raise StorageError(
            f"{model.name!r} could not be written ({error.strerror}); free disk space, then run `marag models get "
            f"{model.name}` again, which continues where it stopped."
        ) from error
    except Exception as error:  # its transport errors come from different libraries in different versions
        raise lost from error
