"""What a corpus says of itself: `manifest.json`, which also marks the folder as ours."""

import hashlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from ..errors import CorpusError
from .passage import Passage
from .stores.rows import to_record

CREATED_BY = "meta-agent-rag"
FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


class Manifest(BaseModel):
    """How a corpus was built. `checksum` is that of `passages_checksum`; `created` is in UTC."""

    model_config = ConfigDict(frozen=True)

    name: str
    created_by: str = CREATED_BY
    format_version: PositiveInt = FORMAT_VERSION
    encoder: str
    dimension: PositiveInt
    chunker: str
    passages: NonNegativeInt
    checksum: str
    dense_store: str
    lexical_store: str
    created: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))


def passages_checksum(passages: Iterable[Passage]) -> str:
    """SHA-256 over ids and contents, the same in whatever order the passages come."""
    digests = sorted(hashlib.sha256(to_record(passage).encode()).digest() for passage in passages)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus in `folder`.

    Raises `CorpusError` for a folder without one of ours, and for one of another format version.
    """
    file = folder / FILE_NAME
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise CorpusError(_foreign(folder)) from error
    if manifest.created_by != CREATED_BY or folder.is_symlink():
        raise CorpusError(_foreign(folder))
    if manifest.format_version != FORMAT_VERSION:
        raise CorpusError(
            f"The corpus {manifest.name!r} has the format {manifest.format_version}, this version reads "
            f"{FORMAT_VERSION}; ingest it again under another name."
        )
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest and have it on disk before returning."""
    with (folder / FILE_NAME).open("w", encoding="utf-8") as file:
        file.write(manifest.model_dump_json(indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _foreign(folder: Path) -> str:
    return (
        f"{str(folder)!r} is not a corpus of {CREATED_BY} (no {FILE_NAME} that says so) and is left as it is; "
        "move it away, or choose another corpus name."
    )
