"""`answer` and `grounded_answer`: single calls that open and close everything they need."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from .agent.engine import Answer, Engine, OnStep, open_engine, require_question
from .agent.grounded import Checks, GroundedAnswer, checked
from .errors import InputError
from .llm.client import traced
from .llm.opening import Given
from .retrieval.corpus.corpus import require_corpus
from .retrieval.corpus.naming import addressed, documents_named
from .retrieval.corpus.sample import SAMPLE
from .retrieval.hybrid import Retriever
from .retrieval.open_retriever import open_retriever
from .retrieval.passage import Passage
from .retrieval.retriever import limited
from .settings import Settings

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig


async def answer(
    question: str,
    *,
    corpus: str = SAMPLE,
    evidence: Sequence[Passage] | None = None,
    documents: Sequence[str] = (),
    grounded: bool = False,
    mentions: bool = False,
    retriever: "Retriever | BaseRetriever | None" = None,
    settings: Settings | None = None,
    on_step: OnStep | None = None,
    model: Given = None,
    config: "RunnableConfig | None" = None,
) -> Answer:
    """Answer a question, with the whole history of rounds.

    The evidence is what you supply, or else what retrieval finds in `corpus`, limited to `documents` if given by
    title or file, and with `mentions` to those that the question names as `@name`; or what your own `retriever` finds,
    ours or LangChain's. With `grounded`, the answer
    comes from the evidence alone, or is NOT FOUND if the evidence does not contain it; otherwise it is the best
    guess. `model` is any chat model of LangChain's, in place of the configured one, and `config` its
    configuration, for instance with callbacks that trace the run.
    `on_step` is called as each node of the graph starts.
    For many questions, keep an engine open (`open_engine`), so that model and encoder load once.

    Raises a `MetaRagError` whose message says what to do.
    """
    chosen = settings or Settings.load()
    opened = _opened(question, chosen, corpus, evidence, retriever, documents=documents, mentions=mentions, model=model)
    async with opened as (engine, over, asked):
        return await engine.answer(
            asked,
            evidence=evidence,
            retriever=over,
            grounded=grounded,
            on_step=on_step,
            config=config,
        )


async def grounded_answer(
    question: str,
    *,
    corpus: str = SAMPLE,
    evidence: Sequence[Passage] | None = None,
    documents: Sequence[str] = (),
    mentions: bool = False,
    retriever: "Retriever | BaseRetriever | None" = None,
    settings: Settings | None = None,
    on_step: OnStep | None = None,
    model: Given = None,
    config: "RunnableConfig | None" = None,
) -> GroundedAnswer:
    """Answer a question from documents alone, checked: cited, or refused with a text that suggests what to try.

    Otherwise like `answer`; `GroundedAnswer.answer` has the history of rounds.
    """
    settings = settings or Settings.load()
    checks = Checks.of(settings)
    opened = _opened(
        question, settings, corpus, evidence, retriever, documents=documents, mentions=mentions, model=model
    )
    async with opened as (engine, over, asked):

        async def answered() -> GroundedAnswer:
            drafted = await engine.answer(asked, evidence=evidence, retriever=over, grounded=True, on_step=on_step)
            return await checked(engine, drafted, checks)

        return await traced("grounded_answer", answered, config)


@asynccontextmanager
async def _opened(
    question: str,
    settings: Settings,
    corpus: str,
    evidence: Sequence[Passage] | None,
    given: "Retriever | BaseRetriever | None",
    *,
    documents: Sequence[str],
    mentions: bool,
    model: Given,
) -> AsyncIterator[tuple[Engine, "Retriever | BaseRetriever | None", str]]:
    """Engine, retriever and question without `@name`s; errors in question or corpus are raised before these are loaded.

    Raises `InputError` for an unknown document.
    """
    require_question(question)
    searches = evidence is None and given is None
    if documents and not searches:
        raise InputError("`documents` chooses among those of a corpus; leave it out with `evidence` or a `retriever`.")
    if searches:
        require_corpus(settings.marag_data_dir, corpus)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(settings, model=model))
        retriever = given
        if searches:
            over = await stack.enter_async_context(open_retriever(settings, corpus))
            catalogue, ids = over.corpus.catalogue, frozenset[str]()
            if mentions and "@" in question:
                question, ids = addressed(question, await asyncio.to_thread(catalogue.documents), documents)
                require_question(question)
            elif documents:
                ids = documents_named(await asyncio.to_thread(catalogue.documents), documents)
            retriever = limited(over, ids)
        yield engine, retriever, question
