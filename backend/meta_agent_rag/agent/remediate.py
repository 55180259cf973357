"""Node `remediate` (planning): carries out a deficit's repair as far as it needs no draft: search, and set aside."""

import logging

from langgraph.runtime import Runtime

from ..discovery import calling, require_result
from ..errors import CorpusError
from .context import Context
from .follow_up_queries import follow_up_queries, unasked
from .state import Repair, RepairPlan, State, Update
from .voting import findings_of

_LOG = logging.getLogger(__name__)


async def remediate(state: State, runtime: Runtime[Context]) -> Update:
    """Plan the next write for the deficit diagnosed in the last round, and search if its repair does.

    If the search fails, the loop stops and keeps the drafts so far.
    """
    context = runtime.context
    last = state["rounds"][-1]
    assert last.diagnosis is not None
    deficit = context.deficits[last.diagnosis.deficit]
    with calling("deficit", deficit.name, deficit.repair):
        repair = deficit.repair(state, findings_of(state, context, last))
        require_result(repair, Repair)
    update: dict[str, object] = {"set_aside": repair.drop} if repair.drop else {}
    queries = _queries(state, context, repair, retrieves=deficit.retrieves)
    if queries and context.retriever is not None:
        known = frozenset(found.passage.id for found in state.get("evidence", ()))
        try:
            retrieval = await context.retriever.retrieve(queries, k=context.settings.retrieval_top_k, exclude=known)
        except CorpusError as error:
            _LOG.warning("A follow-up search failed; the drafts so far are kept: %s", error)
            return {"stop_reason": "search_failed"}
        update |= {"evidence": retrieval.found, "dropped": retrieval.dropped, "queries": queries}
    plan = RepairPlan(
        deficit=deficit.name,
        directive=repair.directive or deficit.directive,
        answer_mode=repair.mode or deficit.answer_mode,
        suggestion=last.diagnosis.suggestion,
        queries=queries,
        repair=repair.kind,
        about=last.diagnosis.about,
        ask=repair.ask,
        adopt=repair.adopt,
        because=repair.because,
        obsolete=repair.obsolete,
        drawn=len(state.get("routes", ())),
    )
    return {**update, "plan": plan}


def _queries(state: State, context: Context, repair: Repair, *, retrieves: bool) -> tuple[str, ...]:
    if not context.may_search:
        return ()
    asked = state.get("queries", ())
    if repair.search is not None:
        return unasked(repair.search, asked)
    return follow_up_queries(state["question"], state["rounds"][-1], asked) if retrieves else ()
