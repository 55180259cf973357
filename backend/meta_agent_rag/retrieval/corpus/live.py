"""Edits of a corpus that this process has open for questions, which continue meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from ...errors import CorpusError
from ...settings import Settings
from ..batching import AsyncEncoder
from .catalogue import FILE_NAME, Catalogue
from .corpus import Corpus
from .editing import CorpusEditor, edited, require_built_alike
from .folder import CorpusFolder, corpus_folder
from .locations import Indexed, on_servers
from .manifest import read_manifest

_ENCODED_TOGETHER = 16
"""Passages that a question waits for at most, where the encoder is shared."""
_PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def edit_live(
    settings: Settings, corpus: Corpus, encoder: AsyncEncoder, *, chunker: str
) -> AsyncIterator[CorpusEditor]:
    """Edit an open corpus; its retriever sees what is published. One edit at a time.

    Raises `CorpusError` if it was built with another chunker, was rebuilt since it was opened, or, on
    servers, is being edited elsewhere for a minute.
    """
    folder = corpus_folder(settings.marag_data_dir, corpus.manifest.name)
    async with AsyncExitStack() as stack:
        if on_servers(corpus.manifest):  # the lock of an embedded one is held as long as it is open
            await _locked(folder, stack)
        manifest = await asyncio.to_thread(read_manifest, folder.path)
        if manifest.generation != corpus.manifest.generation:
            raise CorpusError(f"The corpus {manifest.name!r} was rebuilt; open it again.")
        require_built_alike(manifest, manifest.model_copy(update={"encoder": encoder.name, "chunker": chunker}))
        # its own connection: questions must not see what is staged and not yet published
        catalogue = await asyncio.to_thread(Catalogue, folder.path / FILE_NAME, manifest.dimension)
        stack.callback(catalogue.close)
        indexed = Indexed(catalogue, corpus.dense, corpus.lexical)
        yield await stack.enter_async_context(
            edited(settings, folder.path, manifest, indexed, encoder, encoded_together=_ENCODED_TOGETHER)
        )


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
