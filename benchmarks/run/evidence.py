"""The evidence that a mode gives to every method."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from meta_agent_rag.datasets import LoadedQuestions, Question
from meta_agent_rag.retrieval.corpus.editing import Progress, ensure_corpus
from meta_agent_rag.retrieval.hybrid import HybridRetriever, Retriever
from meta_agent_rag.retrieval.opening import open_encoder, open_retriever
from meta_agent_rag.retrieval.passage import Passage, passages_of
from meta_agent_rag.settings import Settings

from .config import RunConfig


def supplied(question: Question, mode: str) -> tuple[Passage, ...] | None:
    """The paragraphs that come with a question: all (`gold`), the supporting ones, or none (`open_domain`)."""
    if mode == "open_domain":
        return None
    wanted = [paragraph for paragraph in question.paragraphs if mode == "gold" or paragraph.is_supporting]
    return passages_of(wanted)


def pooled(questions: Sequence[Question]) -> tuple[Passage, ...]:
    """All paragraphs of a data file, each once, in the order of the file."""
    return passages_of(paragraph for question in questions for paragraph in question.paragraphs)


@asynccontextmanager
async def open_domain(
    config: RunConfig, loaded: LoadedQuestions, on_progress: Progress | None
) -> AsyncIterator[HybridRetriever | None]:
    """The retriever of an `open_domain` run, over its own corpus; `None` in the other modes.

    The corpus pools the whole data file, regardless of the sample, and is named by its content: it is
    built once, and no other corpus is touched. `--corpus NAME` uses an ingested corpus instead.
    """
    if config.mode != "open_domain":
        yield None
        return
    encoder = open_encoder(config.settings)
    name = config.corpus
    if name is None:
        encoded_by = hashlib.sha256(encoder.name.encode()).hexdigest()[:8]
        name = f"bench-{config.dataset}-{loaded.sha256[:12]}-{encoded_by}"
        await ensure_corpus(
            config.settings,
            name,
            pooled(loaded.questions),
            encoder,
            replace=True,
            on_progress=on_progress,
        )
    async with open_retriever(config.settings, name, encoder=encoder) as retriever:
        yield retriever


def tuned(retriever: Retriever, settings: Settings) -> Retriever:
    """The retriever with a row's own retrieval settings; the reranker stays that of the run."""
    if not isinstance(retriever, HybridRetriever):
        return retriever
    return replace(
        retriever,
        pool=settings.retrieval_pool,
        rrf_k=settings.rrf_k,
        fusion=settings.fusion,
        blend_floor=settings.blend_floor,
        links=settings.links,
    )
