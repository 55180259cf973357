"""The description of a corpus: `manifest.json`, which also marks the folder as this package's."""

import hashlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pydantic import AwareDatetime, BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from ...errors import CorpusError
from ..passage import Passage
from ..stores.rows import to_record

CREATED_BY = "meta-agent-rag"
FORMAT_VERSION = 2
FILE_NAME = "manifest.json"
BEING_EDITED = ""
"""The checksum during an edit, and after an interrupted one."""


class Manifest(BaseModel, frozen=True):
    """How a corpus was built, and its contents after the last edit.

    `checksum` is that of `passages_checksum`; `created` is in UTC; `generation` distinguishes a rebuilt corpus
    from its predecessor where both must exist side by side.
    """

    name: str
    created_by: str = CREATED_BY
    format_version: PositiveInt = FORMAT_VERSION
    encoder: str
    dimension: PositiveInt
    chunker: str
    documents: NonNegativeInt = 0
    passages: NonNegativeInt = 0
    checksum: str = ""
    dense_store: str
    lexical_store: str
    generation: str = Field(default_factory=lambda: uuid4().hex[:8])
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


def passages_checksum(passages: Iterable[Passage]) -> str:
    """SHA-256 over ids and contents, independent of the order of passages."""
    digests = sorted(hashlib.sha256(to_record(passage).encode()).digest() for passage in passages)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus in `folder`.

    Raises `CorpusError` for a folder without a manifest of this package. Its format may differ: see `require_format`.
    """
    file = folder / FILE_NAME
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise CorpusError(_foreign(folder)) from error
    if manifest.created_by != CREATED_BY or folder.is_symlink():
        raise CorpusError(_foreign(folder))
    return manifest


def require_format(manifest: Manifest) -> Manifest:
    """The manifest, if this version can read the corpus; else `CorpusError`."""
    if manifest.format_version != FORMAT_VERSION:
        raise CorpusError(
            f"The corpus {manifest.name!r} has format {manifest.format_version}, but this version reads "
            f"{FORMAT_VERSION}; drop it (`marag corpora drop {manifest.name}`) and ingest it again."
        )
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest atomically and durably."""
    unfinished = folder / f".{FILE_NAME}"
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / FILE_NAME)


def _foreign(folder: Path) -> str:
    return (
        f"{str(folder)!r} is not a corpus of {CREATED_BY} (it has no matching {FILE_NAME}) and was left unchanged; "
        "move it away, or choose another corpus name."
    )
