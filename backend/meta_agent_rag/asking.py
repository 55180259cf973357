"""`answer`: one call from a notebook, everything opened and closed around it."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from .agent.engine import Answer, open_engine
from .llm.exchange import Transport
from .retrieval.opening import open_retriever
from .retrieval.passage import Passage
from .retrieval.sample import SAMPLE
from .settings import Settings


async def answer(
    question: str,
    *,
    corpus: str = SAMPLE,
    evidence: Sequence[Passage] | None = None,
    grounded: bool = False,
    settings: Settings | None = None,
    transport: Transport | None = None,
) -> Answer:
    """Answer a question, with the whole history of rounds.

    The evidence is what you supply, else what retrieval finds in `corpus`. `grounded` answers from the
    evidence alone and says NOT FOUND where it is silent; otherwise the best guess is given. For many
    questions keep an engine open (`open_engine`), so that model and encoder load once.

    Raises a `MetaRagError` whose message says what to do.
    """
    settings = settings or Settings.load()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_engine(settings, transport=transport))
        retriever = None
        if evidence is None:
            retriever = await stack.enter_async_context(open_retriever(settings, corpus))
        return await engine.answer(question, evidence=evidence, retriever=retriever, grounded=grounded)
