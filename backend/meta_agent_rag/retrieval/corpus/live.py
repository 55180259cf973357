"""Edits of a corpus that this process has open for questions, which continue to be answered."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

from ...errors import CorpusError
from ...settings import Settings
from ..batching import AsyncEncoder
from .catalogue import FILE_NAME, Catalogue
from .corpus import Corpus
from .editing import CorpusEditor, edited, require_built_alike
from .folder import CorpusFolder, corpus_folder
from .locations import Indexed, on_servers, opened
from .manifest import Manifest, read_manifest

_ENCODED_TOGETHER = 16
"""The most passages that a question waits for if the encoder is shared."""
_PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def edit_live(
    settings: Settings, corpus: Corpus, encoder: AsyncEncoder, *, chunker: str
) -> AsyncIterator[CorpusEditor]:
    """Edit an open corpus; its retriever sees the changes at the latest at the end. One edit at a time.

    Raises `CorpusError` if it was built with another chunker, was rebuilt since it was opened, or is being edited
    elsewhere for a minute.
    """
    folder = corpus_folder(settings.marag_data_dir, corpus.manifest.name)
    async with AsyncExitStack() as stack:
        await _locked(folder, stack)
        manifest = await asyncio.to_thread(read_manifest, folder.path)
        if manifest.generation != corpus.manifest.generation:
            raise CorpusError(f"The corpus {manifest.name!r} was rebuilt; open it again.")
        require_built_alike(manifest, manifest.model_copy(update={"encoder": encoder.name, "chunker": chunker}))
        if corpus.renew is not None:
            stack.push_async_callback(corpus.renew)
        indexed = await stack.enter_async_context(_indexed(settings, folder, manifest, corpus))
        yield await stack.enter_async_context(
            edited(settings, folder.path, manifest, indexed, encoder, encoded_together=_ENCODED_TOGETHER)
        )


@asynccontextmanager
async def _indexed(
    settings: Settings, folder: CorpusFolder, manifest: Manifest, corpus: Corpus
) -> AsyncIterator[Indexed]:
    """The edited stores: embedded indexes themselves, not the copy; on servers the open ones.

    The catalogue has a separate connection, because questions must not see staged, unpublished data.
    """
    if not on_servers(manifest):
        async with opened(settings, folder.path, manifest) as indexed:
            yield indexed
        return
    with closing(await asyncio.to_thread(Catalogue, folder.path / FILE_NAME, manifest.dimension)) as catalogue:
        yield Indexed(catalogue, corpus.dense, corpus.lexical)


async def _locked(folder: CorpusFolder, stack: AsyncExitStack) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            await stack.enter_async_context(folder.locked())
        except CorpusError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.5)
        else:
            return
