"""Opens a corpus for questions, as settings describe it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import SettingsError
from ..settings import Settings
from .batching import AsyncEncoder
from .corpus import Progress, ensure_corpus, open_corpus
from .encoder import load_encoder
from .hybrid import HybridRetriever
from .sample import SAMPLE, sample_passages

_LOG = logging.getLogger(__name__)


def open_encoder(settings: Settings) -> AsyncEncoder:
    """The encoder of passages, or the packaged one in its place; which it is, is said in one line."""
    choice = load_encoder(settings)
    if choice.note:
        _LOG.warning("%s", choice.note)
    return AsyncEncoder(choice.encoder)


@asynccontextmanager
async def open_retriever(
    settings: Settings,
    corpus: str = SAMPLE,
    *,
    encoder: AsyncEncoder | None = None,
    on_progress: Progress | None = None,
) -> AsyncIterator[HybridRetriever]:
    """A retriever over a corpus, closed at the end; `sample` is built on first use.

    Raises `CorpusError` where there is no such corpus, or it was built with another encoder.
    """
    require_embedded_stores(settings)
    if encoder is None:
        encoder = await asyncio.to_thread(open_encoder, settings)
    if corpus == SAMPLE:
        passages = sample_passages()
        await ensure_corpus(settings.marag_data_dir, corpus, passages, encoder, replace=True, on_progress=on_progress)
    async with open_corpus(settings.marag_data_dir, corpus, encoder.name, await encoder.dimension()) as opened:
        yield HybridRetriever(corpus=opened, encoder=encoder, pool=settings.retrieval_pool, rrf_k=settings.rrf_k)


def require_embedded_stores(settings: Settings) -> None:
    """Refuse server addresses until there are stores for them, rather than ignore them."""
    for name in ("qdrant_url", "elasticsearch_url"):
        if getattr(settings, name):
            raise SettingsError(f"{name.upper()} is set, but this version has the embedded stores alone; unset it.")
