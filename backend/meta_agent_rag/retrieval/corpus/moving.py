"""Moves a corpus between embedded indexes and servers; the catalogue, and thus every vector, is kept."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from ...errors import CorpusError, SettingsError
from ...settings import Settings
from ..passage import Passage
from .corpus import locked_corpus
from .editing import Progress, counted
from .locations import dropped_stores, fill, opened, stores_at
from .manifest import Manifest, passages_checksum, write_manifest

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CopyReport:
    """Passages and checksum of the catalogue, and of each index after the move."""

    name: str
    to: str
    passages: int
    checksum: str
    dense_passages: int
    dense_checksum: str
    lexical_passages: int
    lexical_checksum: str


async def copy_corpus(settings: Settings, name: str, to: str, on_progress: Progress | None = None) -> CopyReport:
    """Index the corpus `name` at `to` ("servers" or "embedded"), verify it there, and use it from then on.

    Nothing is re-encoded. The indexes at the old place are removed only once the new ones hold the same passages,
    by count and checksum. Raises `CorpusError` if they do not, if the corpus is already there, or
    if a server fails; the corpus is then unchanged.
    """
    names = stores_at(to)
    if to == "servers" and not (settings.qdrant_url and settings.elasticsearch_url):
        raise SettingsError(f"Set QDRANT_URL and ELASTICSEARCH_URL to copy the corpus {name!r} there.")
    async with locked_corpus(settings, name) as (folder, manifest):
        if manifest.dense_store == names.dense:
            raise CorpusError(f"The indexes of the corpus {name!r} are already {to!r}; nothing to do.")
        place = {"dense_store": names.dense, "lexical_store": names.lexical, "generation": uuid4().hex[:8]}
        moved = manifest.model_copy(update=place)
        made = False
        try:
            async with opened(settings, folder.path, moved, mend=False) as indexed:
                made = True
                await fill(indexed.catalogue, indexed.dense, indexed.lexical, on_progress)
                # An interrupted edit is kept as it is, and completed at the next open, here or there.
                moved = await asyncio.to_thread(counted, moved, indexed.catalogue)
                dense, lexical = await _held(indexed.dense.scan()), await _held(indexed.lexical.scan())
            report = CopyReport(
                name=name, to=to, passages=moved.passages, checksum=moved.checksum,
                dense_passages=dense[0], dense_checksum=dense[1],
                lexical_passages=lexical[0], lexical_checksum=lexical[1],
            )  # fmt: skip
            _require_equal(report)
        except BaseException:
            if made:
                await _dropped(settings, folder.path, moved)
            raise
        await asyncio.to_thread(write_manifest, folder.path, moved)
        await _dropped(settings, folder.path, manifest)
        return report


async def _held(passages: AsyncIterator[Passage]) -> tuple[int, str]:
    held = [passage async for passage in passages]
    return len(held), await asyncio.to_thread(passages_checksum, held)


def _require_equal(report: CopyReport) -> None:
    wanted = (report.passages, report.checksum)
    for kind, held in (
        ("dense", (report.dense_passages, report.dense_checksum)),
        ("lexical", (report.lexical_passages, report.lexical_checksum)),
    ):
        if held != wanted:
            raise CorpusError(
                f"The {kind} index at {report.to!r} holds {held[0]} passages, not the same {wanted[0]}; the corpus "
                f"{report.name!r} stays where it was. Check that server's health and copy again."
            )


async def _dropped(settings: Settings, folder: Path, manifest: Manifest) -> None:
    """Remove indexes that are no longer used; unreachable ones are named and left."""
    try:
        await dropped_stores(settings, folder, manifest)
    except CorpusError as error:
        left = f"marag-{manifest.name}-{manifest.generation}"
        _LOG.warning("The indexes %r are no longer used and could not be removed: %s", left, error)
