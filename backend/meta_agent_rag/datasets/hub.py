"""The rows of a run from the Hugging Face hub, with what identifies them."""

import hashlib
import json

from .hub_rows import Hub, place
from .hub_rows import read_hub_rows as fetched
from .rows import RawRows


def read_hub_rows(hub: Hub) -> RawRows:
    """Load a split; `sha256` is over the rows as sorted JSON, a line each. Raises `DataFileError`."""
    rows = fetched(hub)
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False).encode() + b"\n")
    return RawRows(rows=tuple(enumerate(rows, start=1)), source=place(hub), sha256=digest.hexdigest())
