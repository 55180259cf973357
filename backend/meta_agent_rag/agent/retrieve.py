"""Node `retrieve`: evidence for the question, searched for or supplied by the caller."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..retrieval.hybrid import Retrieval, Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import screen
from ..retrieval.supplied import SuppliedRetriever
from .context import Context
from .prompting import pack
from .state import State, Update

_FILLING = 20
"""The most passages of a first draft over documents: of 28 questions, 25 had their quotes in the first 5, 27 here."""


async def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Evidence for the question itself."""
    context = runtime.context
    question, least = state["question"], context.settings.retrieval_top_k
    most = max(least, _FILLING) if _fills_the_budget(context) else least
    first = await first_evidence(question, context.evidence, context.retriever, k=most)
    found = first.found
    if most > least:
        packed = pack(found, context.model.owner.evidence_tokens(), marked=True).packing
        whole = set(packed.packed_ids) - set(packed.shortened_ids)
        found = (*found[:least], *(one for one in found[least:] if one.passage.id in whole))
    asked = (question,) if context.evidence is None else ()
    return {"evidence": found, "dropped": (*context.dropped, *first.dropped), "queries": asked}


def _fills_the_budget(context: Context) -> bool:
    """Whether a draft sees as many passages of a corpus as EVIDENCE_TOKENS has room for.

    Not if RETRIEVAL_TOP_K was set, if the evidence was supplied, or with a model in this process, which reads slowly.
    """
    if not context.grounded or "retrieval_top_k" in context.settings.model_fields_set:
        return False
    _, writer = context.model.owner.serving("write")
    return not writer.is_embedded and not isinstance(context.retriever, SuppliedRetriever)


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
