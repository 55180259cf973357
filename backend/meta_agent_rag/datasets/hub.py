"""Rows of a data set from the Hugging Face hub, or an error within seconds if it is unreachable."""

import hashlib
import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import SecretStr

from ..errors import DataFileError
from ..extras import require
from .rows import RawRows

_CONNECT_SECONDS = 3.0
_LOADING = threading.Lock()
_COMMIT = re.compile(r"@([0-9a-f]{40})/")


class Hub(NamedTuple):
    """The place of a data set on the hub."""

    repository: str
    config: str | None = None
    split: str = "validation"

    @property
    def place(self) -> str:
        """The place in words."""
        return "/".join(part for part in self if part)


@dataclass(frozen=True, kw_only=True)
class HubAccess:
    """The token for the hub, and the revision of a data set (commit, tag or branch); by default the newest."""

    token: SecretStr | None = None
    revision: str | None = None


def read_hub_rows(hub: Hub, *, most: int | None = None, access: HubAccess | None = None) -> RawRows:
    """Load a split, or its first `most` rows, from the hub or, if that does not respond, from the local cache.

    `sha256` is over the rows as sorted JSON, one per line.
    Raises `DataFileError`, which suggests `--data-file`, and `MissingExtraError` without the library `datasets`.
    """
    rows, revision = _fetched(hub, most, access or HubAccess())
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(dict(row), sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return RawRows(
        rows=enumerate(map(dict, rows), start=1), source=hub.place, sha256=digest.hexdigest(), revision=revision
    )


def _fetched(hub: Hub, most: int | None, access: HubAccess) -> tuple[Iterable[Mapping[str, object]], str | None]:
    require("bench", f"Reading {hub.place} from the Hugging Face hub")
    import datasets
    from huggingface_hub import constants

    with _LOADING:  # the offline mode applies to the whole library
        was_offline = datasets.config.HF_HUB_OFFLINE
        reached = not was_offline and _answers(constants.ENDPOINT)
        # In offline mode the library reads its cache immediately; otherwise it would first retry for minutes.
        datasets.config.HF_HUB_OFFLINE = not reached
        try:
            rows = datasets.load_dataset(
                hub.repository,
                hub.config,
                split=hub.split,
                revision=access.revision,
                token=None if access.token is None else access.token.get_secret_value(),
            )
            return (rows if most is None else rows.take(most)), _commit(rows.info)
        except Exception as error:  # the hub's client, the parquet reader and the cache have no common base
            lost = f"{constants.ENDPOINT} does not respond and no cached copy can be read"
            why = type(error).__name__ if reached else lost
            asked = "" if access.revision is None else f" at the revision {access.revision!r}"
            raise DataFileError(
                f"{hub.place}{asked} could not be loaded from the Hugging Face hub ({why}); "
                "download the official file and pass it with --data-file."
            ) from error
        finally:
            datasets.config.HF_HUB_OFFLINE = was_offline


def _commit(info: Any) -> str | None:
    """The commit that files were downloaded from, taken from their addresses; `None` if unknown."""
    found = (_COMMIT.search(str(address)) for address in info.download_checksums or ())
    return next((match[1] for match in found if match), None)


def _answers(endpoint: str) -> bool:
    """Does anything respond there? In a thread, because name resolution has no time limit."""
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
