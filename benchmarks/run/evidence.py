"""What a row gets from the data set: the evidence of its mode, and gold information in place of a stage (an oracle)."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from meta_agent_rag.agent.context import Oracles
from meta_agent_rag.agent.engine import Engine
from meta_agent_rag.agent.state import NO_DEFICIT, Draft, Round
from meta_agent_rag.datasets import LoadedQuestions, Question
from meta_agent_rag.retrieval.corpus.editing import Progress, ensure_corpus
from meta_agent_rag.retrieval.hybrid import HybridRetriever, Retriever
from meta_agent_rag.retrieval.open_retriever import open_encoder, open_retriever
from meta_agent_rag.retrieval.passage import Passage, passages_of
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.settings import Settings

from ..methods import MethodTask, named
from ..metrics import score_answer
from .config import RunConfig


def supplied(question: Question, mode: str) -> tuple[Passage, ...] | None:
    """The paragraphs that come with a question: all (`gold`), the supporting ones, or none (`open_domain`)."""
    if mode == "open_domain":
        return None
    wanted = [paragraph for paragraph in question.paragraphs if mode == "gold" or paragraph.is_supporting]
    return passages_of(wanted)


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
            passages_of(paragraph for question in loaded.questions for paragraph in question.paragraphs),
            encoder,
            on_progress=on_progress,
        )
    async with open_retriever(config.settings, name, encoder=encoder) as retriever:
        yield retriever


def tuned(retriever: Retriever, settings: Settings) -> Retriever:
    """The retriever with a row's own retrieval settings."""
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


def oracles_for(stages: Sequence[str], engine: Engine, question: Question, *, name: str) -> Oracles:
    """The oracles of a row for one question; the oracle `retrieval` is the evidence itself, see `supplied`.

    The oracle monitor accepts a draft that matches a gold answer exactly. The oracle diagnosis finds nothing wrong
    with such a draft; otherwise it checks whether the model answers correctly without evidence, and whether all
    supporting paragraphs are in the prompt.
    """

    def is_right(draft: Draft) -> bool:
        return score_answer(draft.short_answer, question.golds).em == 1.0

    async def deficit_of(round_: Round) -> str:
        if is_right(round_.draft):
            return NO_DEFICIT
        (closed_book,) = named("closed_book")
        task = MethodTask(
            id=question.id,
            question=question.text,
            method=f"{name} (closed book)",
            search=SuppliedRetriever(passages=(), encoder=engine.monitor_encoder),
            evidence=(),
        )
        memory = await closed_book.answer(engine, task)
        knows = score_answer(memory.short_answer, question.golds).em == 1.0
        wanted = {passage.id for passage in passages_of(one for one in question.paragraphs if one.is_supporting)}
        complete = wanted <= set(round_.packing.packed_ids) - set(round_.packing.shortened_ids)
        fitting = (deficit for deficit in engine.deficits if deficit.quadrant == (knows, complete))
        return next(fitting, engine.deficits.guess(round_.signals)).name

    return Oracles(
        monitor=is_right if "monitor" in stages else None, diagnosis=deficit_of if "diagnosis" in stages else None
    )
