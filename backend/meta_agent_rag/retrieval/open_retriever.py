"""Opens a corpus for questions, as the settings describe it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from ..discovery import named
from ..extras import require
from ..settings import Settings
from ..shipped import shipped
from .batching import AsyncEncoder
from .corpus.corpus import open_corpus, require_corpus
from .corpus.editing import Progress, ensure_corpus
from .corpus.sample import SAMPLE, sample_passages
from .encoders import Encoder
from .encoders.loading import as_encoder, load_encoder
from .hybrid import HybridRetriever

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_LOG = logging.getLogger(__name__)


def open_encoder(settings: Settings, engine: str | None = None) -> AsyncEncoder:
    """The encoder of passages, or, with a warning, its substitute; with an engine, on the machines of a cluster.

    Raises `UnknownNameError` for an engine other than `ray`, and `MissingExtraError`.
    """
    if engine is not None:
        named("engine", engine, {"ray": None})
        require(engine, f"--engine {engine}")
    # only the nodes need the device
    choice = load_encoder(settings if engine is None else settings.model_copy(update={"encoder_device": "auto"}))
    if choice.note:
        _LOG.warning("%s", choice.note)
    if engine is None:
        return AsyncEncoder(choice.encoder)
    from .encoders.cluster import ClusterEncoder

    return AsyncEncoder(ClusterEncoder(choice.encoder, settings))


@asynccontextmanager
async def open_retriever(
    settings: Settings,
    corpus: str = SAMPLE,
    *,
    encoder: "AsyncEncoder | Encoder | Embeddings | None" = None,
    on_progress: Progress | None = None,
) -> AsyncIterator[HybridRetriever]:
    """A retriever over a corpus, closed at the end; `sample` is built on first use.

    `encoder` is the one that the corpus was built with; default: that of the settings. Raises `CorpusError` if the
    corpus does not exist or was built with another encoder.
    """
    await asyncio.to_thread(require_corpus, settings.marag_data_dir, corpus)
    if encoder is None:
        encoder = await asyncio.to_thread(open_encoder, settings)
    if not isinstance(encoder, AsyncEncoder):
        encoder = AsyncEncoder(as_encoder(encoder))
    if corpus == SAMPLE:
        checksum = sha256(shipped("questions.json").read_bytes()).hexdigest()
        await ensure_corpus(settings, corpus, sample_passages, encoder, checksum=checksum, on_progress=on_progress)
    async with open_corpus(settings, corpus, encoder.name, await encoder.dimension()) as opened:
        yield HybridRetriever(
            corpus=opened,
            encoder=encoder,
            pool=settings.retrieval_pool,
            rrf_k=settings.rrf_k,
            fusion=settings.fusion,
            blend_floor=settings.blend_floor,
            screening=settings.screening,
            links=settings.links,
        )
