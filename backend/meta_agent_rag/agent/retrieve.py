"""Node `retrieve`: evidence for the question, searched for or supplied by the caller."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..retrieval.hybrid import Retrieval, Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import screen
from .context import Context
from .state import State, Update


async def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Evidence for the question itself."""
    context = runtime.context
    question = state["question"]
    first = await first_evidence(question, context.evidence, context.retriever, k=context.settings.retrieval_top_k)
    asked = (question,) if context.evidence is None else ()
    return {"evidence": first.found, "dropped": (*context.dropped, *first.dropped), "queries": asked}


async def first_evidence(
    question: str, supplied: Sequence[Passage] | None, retriever: Retriever | None, *, k: int
) -> Retrieval:
    """The evidence of the first draft: all of `supplied`, else the k best passages that the retriever finds.

    Suspect supplied evidence is marked but never dropped here; `Engine.begin` drops it for grounded runs.
    """
    if supplied is not None:
        given = [Found(passage=passage, score=0.0) for passage in supplied]
        return Retrieval(found=screen(given, drop=False).kept)
    if retriever is None:
        return Retrieval()
    return await retriever.retrieve([question], k=k)
