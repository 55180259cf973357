"""A corpus on disk: its manifest, its dense and its lexical index, built whole or not at all.

Layout: `<data_dir>/corpora/<name>/{manifest.json, dense/, lexical/}`. One process at a time works
with a corpus. A folder that this package did not create is never touched.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..errors import CorpusError, InputError
from .batching import AsyncEncoder
from .corpus_folder import CorpusFolder, corpus_folder
from .manifest import FILE_NAME, Manifest, passages_checksum, read_manifest, write_manifest
from .passage import Passage
from .stores import DenseStore, LexicalStore, discover_stores

__all__ = ["Corpus", "Manifest", "build_corpus", "ensure_corpus", "list_corpora", "open_corpus"]

DENSE_STORE = "qdrant-edge"
LEXICAL_STORE = "tantivy"
UNCHUNKED = "none"
_BATCH = 512
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """An open corpus."""

    manifest: Manifest
    dense: DenseStore
    lexical: LexicalStore


async def build_corpus(
    data_dir: Path,
    name: str,
    passages: Sequence[Passage],
    encoder: AsyncEncoder,
    *,
    chunker: str = UNCHUNKED,
    replace: bool = False,
    on_progress: Progress | None = None,
) -> Manifest:
    """Build the corpus `name`; `on_progress(done, total)` is called after each batch of passages.

    The corpus appears when it is complete; an error, a cancellation or a kill leaves what was there.
    Raises `CorpusError` if the name is taken (by a corpus, unless `replace`; by anything else, always)
    or in use, `InputError` for a bad name, no passages, or two passages of one id.
    """
    _check_passages(passages)
    folder = corpus_folder(data_dir, name)
    async with folder.locked():
        existing = await asyncio.to_thread(folder.existing)
        if existing is not None and not replace:
            raise CorpusError(f"There is a corpus {name!r} already; replace it expressly, or choose another name.")
        return await _build(folder, passages, encoder, chunker, on_progress)


async def ensure_corpus(
    data_dir: Path,
    name: str,
    passages: Sequence[Passage],
    encoder: AsyncEncoder,
    *,
    chunker: str = UNCHUNKED,
    replace: bool = False,
    on_progress: Progress | None = None,
) -> Manifest:
    """Like `build_corpus`, but takes the corpus that is there if encoder, chunker and passages are the same."""
    _check_passages(passages)
    folder = corpus_folder(data_dir, name)
    async with folder.locked():
        existing = await asyncio.to_thread(folder.existing)
        checksum = await asyncio.to_thread(passages_checksum, passages)
        wanted = (encoder.name, chunker, checksum)
        same = existing is not None and (existing.encoder, existing.chunker, existing.checksum) == wanted
        if existing is not None and same and not _lost_indexes(folder.path):
            return existing
        if existing is not None and not replace:
            raise CorpusError(
                f"The corpus {name!r} was built from other passages, or with another encoder ({existing.encoder!r}) "
                "or chunker; replace it expressly, or choose another name."
            )
        return await _build(folder, passages, encoder, chunker, on_progress)


@asynccontextmanager
async def open_corpus(data_dir: Path, name: str, encoder_name: str, dimension: int) -> AsyncIterator[Corpus]:
    """Open the corpus `name` for questions that are encoded by `encoder_name`, and close it afterwards.

    Raises `CorpusError` if there is none, it is in use elsewhere, or was built with another encoder.
    """
    folder = corpus_folder(data_dir, name)
    if not await asyncio.to_thread(folder.home.is_dir):
        raise CorpusError(_missing(folder))
    async with folder.locked():
        manifest = await asyncio.to_thread(folder.existing)
        if manifest is None:
            raise CorpusError(_missing(folder))
        _require_encoder(manifest, encoder_name, dimension)
        if lost := _lost_indexes(folder.path):
            raise CorpusError(f"The corpus {name!r} has lost its {' and '.join(lost)} index; build it again.")
        async with _stores(folder.path, manifest) as (dense, lexical):
            yield Corpus(manifest=manifest, dense=dense, lexical=lexical)


def list_corpora(data_dir: Path) -> tuple[Manifest, ...]:
    """The manifests of all corpora, by name; other folders are passed over."""
    files = sorted((data_dir / "corpora").glob(f"[!.]*/{FILE_NAME}"))
    manifests = []
    for file in files:
        try:
            manifests.append(read_manifest(file.parent))
        except CorpusError:
            continue
    return tuple(manifests)


async def _build(
    folder: CorpusFolder, passages: Sequence[Passage], encoder: AsyncEncoder, chunker: str, on_progress: Progress | None
) -> Manifest:
    manifest = Manifest(
        name=folder.name,
        encoder=encoder.name,
        dimension=await encoder.dimension(),
        chunker=chunker,
        passages=len(passages),
        checksum=await asyncio.to_thread(passages_checksum, passages),
        dense_store=DENSE_STORE,
        lexical_store=LEXICAL_STORE,
    )
    await asyncio.to_thread(folder.start)
    try:
        async with _stores(folder.building, manifest) as (dense, lexical):
            await lexical.add(passages)
            for start in range(0, len(passages), _BATCH):
                batch = passages[start : start + _BATCH]
                await dense.add(batch, await encoder.passages([passage.searchable() for passage in batch]))
                if on_progress is not None:
                    on_progress(start + len(batch), len(passages))
        await asyncio.to_thread(write_manifest, folder.building, manifest)
        await asyncio.to_thread(folder.install)
    finally:
        await asyncio.to_thread(folder.discard)
    return manifest


@asynccontextmanager
async def _stores(folder: Path, manifest: Manifest) -> AsyncIterator[tuple[DenseStore, LexicalStore]]:
    known = discover_stores()
    if manifest.dense_store not in known.dense or manifest.lexical_store not in known.lexical:
        names = f"{manifest.dense_store!r} and {manifest.lexical_store!r}"
        raise CorpusError(f"The corpus {manifest.name!r} needs the stores {names}, not both of which are known here.")
    open_dense, open_lexical = known.dense[manifest.dense_store].open, known.lexical[manifest.lexical_store].open
    async with open_dense(folder / "dense", manifest.dimension) as dense, open_lexical(folder / "lexical") as lexical:
        yield dense, lexical


def _check_passages(passages: Sequence[Passage]) -> None:
    if not passages:
        raise InputError("There are no passages to build a corpus from; give at least one document with text.")
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise InputError(f"Two passages have the id {passage.id!r}; give each its own.")
        seen.add(passage.id)


def _require_encoder(manifest: Manifest, encoder_name: str, dimension: int) -> None:
    built, given = (manifest.encoder, manifest.dimension), (encoder_name, dimension)
    if built != given:
        raise CorpusError(
            f"The corpus {manifest.name!r} was built with the encoder {built[0]!r} ({built[1]} dimensions), not with "
            f"{given[0]!r} ({given[1]}); set ENCODER={built[0]}, or build it again."
        )


def _lost_indexes(folder: Path) -> list[str]:
    """Indexes whose folders are gone or empty: a search there would silently find nothing."""
    kinds = ("dense", "lexical")
    return [kind for kind in kinds if not (folder / kind).is_dir() or not any((folder / kind).iterdir())]


def _missing(folder: CorpusFolder) -> str:
    known = ", ".join(repr(manifest.name) for manifest in list_corpora(folder.home.parent)) or "none yet"
    return f"There is no corpus {folder.name!r} (there are: {known}); build it first (`build_corpus`)."
