"""Models for this machine: the list in `models.yaml`, the one that the embedded provider runs, and their download."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, PositiveFloat, PositiveInt

from ..errors import RefusedError, SettingsError, StorageError, TransientError, UnreachableError
from ..extras import require
from ..settings import Settings

PACKAGED = "smollm2-135m"
"""The name of the model in the extra `embedded`; it is not in the list, because it needs no download."""
SLOTS = 2
"""The number of calls that the embedded server answers concurrently, each with its own context window."""
PROMPT_CACHE_MIB = 1024
"""Memory that the embedded server may use for earlier prompts, in addition to its slots."""
_BESIDE_MIB = PROMPT_CACHE_MIB + 1024
"""The prompt cache, plus 1 GiB for llama.cpp's buffers and this process with its encoder (0.6 GiB)."""
_BYTES_A_VALUE = 2
"""Keys and values are stored in half precision."""


class LocalModel(BaseModel, frozen=True, extra="forbid"):
    """One row of `models.yaml`; the fields are explained there."""

    name: str
    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    file: Annotated[str, Field(pattern=r"^[\w.-]+\.gguf$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    bytes: PositiveInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    licence: str
    parameters: PositiveFloat
    attention: tuple[PositiveInt, PositiveInt, PositiveInt]

    def path(self, settings: Settings) -> Path:
        """The place of the downloaded file; the file exists only once it is complete and verified."""
        return settings.marag_data_dir / "models" / self.file

    def memory(self, settings: Settings) -> int:
        """Bytes of memory for a run with it: weights, the context of every slot, and what runs beside it."""
        layers, heads, size = self.attention
        context = 2 * layers * heads * size * _BYTES_A_VALUE * settings.embedded_context_tokens * SLOTS
        return self.bytes + context + (_BESIDE_MIB << 20)


@cache
def local_models() -> Mapping[str, LocalModel]:
    """All models in the list by name, smallest first."""
    rows = yaml.safe_load(files(__package__).joinpath("models.yaml").read_text(encoding="utf-8"))
    return {name: LocalModel(name=name, **row) for name, row in rows.items()}


AUTO = "auto"
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux states a container's limit."""


def listed_model(settings: Settings) -> LocalModel | None:
    """The listed model that EMBEDDED_MODEL selects, downloaded or not; `None` for the packaged model.

    `auto` chooses the largest that is downloaded and fits this machine's memory. Raises `SettingsError`.
    """
    name = settings.embedded_model
    if name == AUTO:
        found = [model for model in local_models().values() if model.path(settings).is_file() and fits(model, settings)]
        return max(found, key=lambda model: model.parameters, default=None)
    if name == PACKAGED:
        return None
    if name not in local_models():
        known = ", ".join((AUTO, PACKAGED, *local_models()))
        raise SettingsError(
            f"EMBEDDED_MODEL names the unknown model {name!r}; choose from: {known}, or set "
            "EMBEDDED_MODEL_PATH to a GGUF file."
        )
    return local_models()[name]


def fits(model: LocalModel, settings: Settings) -> bool:
    """Whether this machine has the memory for it; assumed if the system does not report its memory."""
    memory = machine_memory()
    return memory is None or model.memory(settings) <= memory


def own_model_file(settings: Settings) -> Path | None:
    """The file used instead of the packaged model, existing or not; `None` if that one is used.

    Raises `SettingsError` for an unknown name.
    """
    if settings.embedded_model_path is not None:
        return settings.embedded_model_path
    model = listed_model(settings)
    return None if model is None else model.path(settings)


def decided(settings: Settings) -> Settings:
    """The settings with `auto` resolved to the current model, so that later downloads do not change a run."""
    if settings.embedded_model_path is not None or settings.embedded_model != AUTO:
        return settings
    model = listed_model(settings)
    return settings.model_copy(update={"embedded_model": PACKAGED if model is None else model.name})


def machine_memory() -> int | None:
    """Bytes of memory, or the container's limit if that is lower; `None` if unknown.

    Total memory, not free memory: the choice of the model should not change from hour to hour.
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return None
    limits = [whole]
    for place in _LIMITS:
        with suppress(OSError, ValueError):  # missing, or "max"
            limits.append(int(Path(place).read_text(encoding="ascii")))
    return min(limits)


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
    free, wanted = shutil.disk_usage(path.parent).free, model.bytes - there + _SPARE_BYTES
    if free < wanted:
        raise StorageError(
            f"{str(path.parent)!r} has {free / 1e9:.1f} GB free, but {model.name!r} needs another "
            f"{wanted / 1e9:.1f} GB; free disk space, or set MARAG_DATA_DIR to another disk."
        )
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


@contextmanager
def _hub_errors(model: LocalModel) -> Iterator[None]:
    """Translate errors of the hub's client into this package's errors."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    elsewhere = f"download {model.file} of {model.repository} elsewhere and set EMBEDDED_MODEL_PATH to it"
    again = f"run `marag models get {model.name}` again, which continues where it stopped"
    try:
        yield
    except HfHubHTTPError as error:
        raise RefusedError(
            f"The hub rejected the request for {model.file} of {model.repository} ({error.response.status_code}); "
            f"check HF_TOKEN, or {elsewhere}."
        ) from error
    except Exception as error:  # transport errors come from different libraries in different versions
        lost = isinstance(error, ConnectionError | TimeoutError)
        if isinstance(error, OSError) and error.errno is not None and not lost:
            raise StorageError(
                f"{model.name!r} could not be written ({error.strerror}); free disk space, then {again}."
            ) from error
        raise UnreachableError(
            f"The Hugging Face hub ({constants.ENDPOINT}) does not respond; {again}, or {elsewhere}."
        ) from error
