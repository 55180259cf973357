"""Node `remediate` (planning): turns a deficit into a directive, an answer mode and, if needed, a search."""

import logging

from langgraph.runtime import Runtime

from ..errors import CorpusError
from .context import Context
from .deficits import Deficit
from .follow_up_queries import follow_up_queries
from .state import Diagnosis, RepairPlan, State, Update

_LOG = logging.getLogger(__name__)


async def remediate(state: State, runtime: Runtime[Context]) -> Update:
    """Plan the next write for the deficit diagnosed in the last round.

    If its search fails, the loop stops and keeps the drafts so far.
    """
    context = runtime.context
    last = state["rounds"][-1]
    assert last.diagnosis is not None
    deficit = context.deficits[last.diagnosis.deficit]
    update: dict[str, object] = {}
    queries: tuple[str, ...] = ()
    if deficit.retrieves and context.may_search:
        queries = follow_up_queries(state["question"], last, state.get("queries", ()))
    if queries and context.retriever is not None:
        known = frozenset(found.passage.id for found in state.get("evidence", ()))
        try:
            retrieval = await context.retriever.retrieve(queries, k=context.settings.retrieval_top_k, exclude=known)
        except CorpusError as error:
            _LOG.warning("A follow-up search failed; the drafts so far are kept: %s", error)
            return {"stop_reason": "search_failed"}
        update = {"evidence": retrieval.found, "dropped": retrieval.dropped, "queries": queries}
    return {**update, "plan": _plan(deficit, last.diagnosis, queries)}


def _plan(deficit: Deficit, diagnosis: Diagnosis, queries: tuple[str, ...]) -> RepairPlan:
    return RepairPlan(
        deficit=deficit.name,
        directive=deficit.directive,
        answer_mode=deficit.answer_mode,
        suggestion=diagnosis.suggestion,
        queries=queries,
        repair=deficit.repair if diagnosis.source == "facts" else "rewrite",
        about=diagnosis.about,
    )
