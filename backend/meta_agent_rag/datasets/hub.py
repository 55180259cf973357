"""Rows of a data set from the Hugging Face hub, or an error within seconds if it cannot be reached."""

import hashlib
import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import SecretStr

from ..errors import DataFileError
from ..extras import require
from .reading.rows import RawRows

_CONNECT_SECONDS = 3.0
_LOADING = threading.Lock()
_COMMIT = re.compile(r"@([0-9a-f]{40})/")


class Hub(NamedTuple):
    """Where the hub has a data set."""

    repository: str
    config: str | None = None
    split: str = "validation"

    @property
    def place(self) -> str:
        """The place on the hub, in words."""
        return "/".join(part for part in self if part)


@dataclass(frozen=True, kw_only=True)
class HubAccess:
    """Who asks the hub, and for which revision of a data set (commit, tag or branch); by default for the newest."""

    token: SecretStr | None = None
    revision: str | None = None


def read_hub_rows(hub: Hub, *, most: int | None = None, access: HubAccess | None = None) -> RawRows:
    """Load a split, or the first `most` rows of it, from the hub or, if it does not answer, from the local cache.

    `sha256` is over the rows as sorted JSON, a line each.
    Raises `DataFileError` that names `--data-file`, and `MissingExtraError` without the library `datasets`.
    """
    rows, revision = _fetched(hub, most, access or HubAccess())
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return RawRows(rows=tuple(enumerate(rows, start=1)), source=hub.place, sha256=digest.hexdigest(), revision=revision)


def _fetched(hub: Hub, most: int | None, access: HubAccess) -> tuple[list[dict[str, object]], str | None]:
    require("bench", f"Reading {hub.place} from the Hugging Face hub")
    import datasets
    from huggingface_hub import constants

    with _LOADING:  # whether it is offline is told to the whole library
        was_offline = datasets.config.HF_HUB_OFFLINE
        reached = not was_offline and _answers(constants.ENDPOINT)
        # Told that it is offline, the library looks in its cache at once; else it would retry for minutes first.
        datasets.config.HF_HUB_OFFLINE = not reached
        try:
            rows = datasets.load_dataset(
                hub.repository,
                hub.config,
                split=hub.split,
                revision=access.revision,
                token=None if access.token is None else access.token.get_secret_value(),
            )
            return [dict(row) for row in (rows if most is None else rows.take(most))], _commit(rows.info)
        except Exception as error:  # the hub's client, the parquet reader and the cache share no base of their own
            lost = f"{constants.ENDPOINT} does not answer and no cached copy can be read"
            why = type(error).__name__ if reached else lost
            asked = "" if access.revision is None else f" at the revision {access.revision!r}"
            raise DataFileError(
                f"{hub.place}{asked} could not be loaded from the Hugging Face hub ({why}); "
                "download the official file and name it with --data-file."
            ) from error
        finally:
            datasets.config.HF_HUB_OFFLINE = was_offline


def _commit(info: Any) -> str | None:
    """The commit that files were downloaded from, as their addresses have it; `None` if they do not tell."""
    found = (_COMMIT.search(str(address)) for address in info.download_checksums or ())
    return next((match[1] for match in found if match), None)


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
