"""Rows of a data set from the Hugging Face hub, or a sentence within seconds where it cannot be reached."""

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from ..errors import DataFileError
from ..extras import require

Hub: TypeAlias = tuple[str, str | None, str]
"""Repository, configuration and split on the Hugging Face hub."""

HUBS: Mapping[str, Hub] = MappingProxyType(
    {
        "hotpotqa": ("hotpotqa/hotpot_qa", "distractor", "validation"),
        "2wikimultihopqa": ("framolfese/2WikiMultihopQA", None, "validation"),
        "musique": ("dgslibisey/MuSiQue", None, "validation"),
    }
)
"""Where the hub has the questions of each known data set."""

_CONNECT_SECONDS = 3.0
_LOADING = threading.Lock()


def place(hub: Hub) -> str:
    """The place on the hub, in words."""
    return "/".join(part for part in hub if part)


def read_hub_rows(hub: Hub, *, most: int | None = None) -> list[dict[str, Any]]:
    """Load a split, or the first `most` rows of it, from the hub or, where it does not answer, from the local cache.

    Raises `DataFileError` that names `--data-file`, and `MissingExtraError` without the library `datasets`.
    """
    require("bench", f"Reading {place(hub)} from the Hugging Face hub")
    import datasets
    from huggingface_hub import constants

    repository, config, split = hub
    with _LOADING:  # whether it is offline is told to the whole library
        was_offline = datasets.config.HF_HUB_OFFLINE
        reached = not was_offline and _answers(constants.ENDPOINT)
        # Told that it is offline, the library looks in its cache at once; else it would retry for minutes first.
        datasets.config.HF_HUB_OFFLINE = not reached
        try:
            rows = datasets.load_dataset(repository, config, split=split)
            return [dict(row) for row in (rows if most is None else rows.take(most))]
        except Exception as error:  # the hub's client, the parquet reader and the cache share no base of their own
            lost = f"{constants.ENDPOINT} does not answer and no cached copy can be read"
            why = type(error).__name__ if reached else lost
            raise DataFileError(
                f"{place(hub)} could not be loaded from the Hugging Face hub ({why}); "
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
