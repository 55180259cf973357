"""Rows from the Hugging Face hub, or a sentence within seconds where it cannot be reached."""

import hashlib
import http.client
import json
import threading
import urllib.error
import urllib.request

from meta_agent_rag.errors import DataFileError

from .dataset import Hub
from .rows import RawRows

_CONNECT_SECONDS = 3.0


def read_hub_rows(hub: Hub) -> RawRows:
    """Load a split, from the hub or, where it does not answer, from the local cache of `datasets`.

    `sha256` is over the rows as sorted JSON, a line each. Raises `DataFileError` that names `--data-file`.
    """
    source = "/".join(part for part in hub if part)
    rows = _loaded(hub, source)
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return RawRows(rows=tuple(enumerate(rows, start=1)), source=source, sha256=digest.hexdigest())


def _loaded(hub: Hub, source: str) -> list[dict[str, object]]:
    import datasets
    from huggingface_hub import constants

    repository, config, split = hub
    was_offline = datasets.config.HF_HUB_OFFLINE
    reached = not was_offline and _answers(constants.ENDPOINT)
    # Told that it is offline, the library looks in its cache at once; else it would retry for minutes first.
    datasets.config.HF_HUB_OFFLINE = not reached
    try:
        return [dict(row) for row in datasets.load_dataset(repository, config, split=split)]
    except Exception as error:  # the hub's client, the parquet reader and the cache share no base of their own
        lost = f"{constants.ENDPOINT} does not answer and no cached copy can be read"
        raise DataFileError(
            f"{source} could not be loaded from the Hugging Face hub ({type(error).__name__ if reached else lost}); "
            "download the official file and name it with --data-file."
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = was_offline


def _answers(endpoint: str) -> bool:
    """Tell whether anything answers there; in a thread, as looking up a name knows no time limit."""
    answered = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=_CONNECT_SECONDS):
                answered.set()
        except urllib.error.HTTPError:
            answered.set()
        except (OSError, ValueError, http.client.HTTPException):
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_CONNECT_SECONDS + 1.0)
    return answered.is_set()
