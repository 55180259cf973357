"""Node `retrieve`: evidence for the question, searched for or supplied by the caller."""

import asyncio
import time
from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..discovery import calling
from ..errors import DeadlineError, ExtensionError
from ..retrieval.hybrid import Retrieval, Retriever
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import screen
from ..retrieval.supplied import SuppliedRetriever
from .context import Context
from .prompting import pack
from .state import State, Update

_FILLING = 20
"""The most passages of a first draft over documents: of 28 questions, 25 had their quotes in the first 5, 27 here."""

_FILLED = 0.85
"""The share of a prompt that they may fill: searches between calls add to it."""


async def retrieve(state: State, runtime: Runtime[Context]) -> Update:
    """Evidence for the question itself.

    Raises `DeadlineError` if it is not found in time, and an `ExtensionError` if a caller's retriever fails.
    """
    context = runtime.context
    question, least = state["question"], context.settings.retrieval_top_k
    most = least
    if context.grounded and "retrieval_top_k" not in context.settings.model_fields_set:
        # over documents, a draft sees what EVIDENCE_TOKENS has room for, but a model in this process reads slowly
        _, writer = context.model.owner.serving("write")
        slow = writer.is_embedded or isinstance(context.retriever, SuppliedRetriever)
        most = least if slow else max(least, _FILLING)
    left = None if context.deadline is None else context.deadline - time.monotonic()
    try:
        with calling("retriever", type(context.retriever).__name__, type(context.retriever)):
            searching = first_evidence(question, context.evidence, context.retriever, k=most)
            first = await asyncio.wait_for(searching, left)
    except ExtensionError as error:
        if isinstance(error.__cause__, TimeoutError) and context.is_late:
            raise DeadlineError("The first search took until the deadline; allow more time.") from None
        raise
    found = first.found
    if most > least:
        packed = pack(found, int(_FILLED * context.model.owner.evidence_tokens()), marked=True).packing
        whole = set(packed.packed_ids) - set(packed.shortened_ids)
        found = (*found[:least], *(one for one in found[least:] if one.passage.id in whole))
    asked = (question,) if context.evidence is None else ()
    return {"evidence": found, "dropped": (*context.dropped, *first.dropped), "queries": asked}


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
