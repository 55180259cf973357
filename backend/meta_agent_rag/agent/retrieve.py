"""Node `retrieve`: evidence for the question, found or as the caller supplies it."""

from langgraph.runtime import Runtime

from ..retrieval.guardrails import screen
from ..retrieval.passage import Found
from .context import Context
from .state import State, Update


async def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Evidence for the question itself; supplied evidence is marked where suspect, and never dropped."""
    context = runtime.context
    question = state["question"]
    if context.evidence is not None:
        supplied = [Found(passage=passage, score=0.0) for passage in context.evidence]
        return {"evidence": screen(supplied, drop=False).kept}
    if context.retriever is None:
        return {"evidence": ()}
    retrieval = await context.retriever.retrieve([question], k=context.settings.retrieval_top_k)
    return {"evidence": retrieval.found, "dropped": retrieval.dropped, "queries": (question,)}
