"""Node `remediate` (planning): carries out a deficit's repair as far as it needs no draft: search, and set aside."""

import asyncio
import logging
import time
from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..discovery import calling, require_result
from ..errors import DeadlineError
from ..grounding.abstention import is_abstention
from ..text.names import spaced, stop_words, words
from ..text.normalise import jaccard, normalised, tokens
from .context import Context
from .state import VERDICTS, Repair, RepairPlan, Round, State, Update
from .stopping import out_of_time
from .voting import findings_of

_LOG = logging.getLogger(__name__)
_RESTATED = 0.7
"""Jaccard similarity of query and question from which a search would find the same passages again."""


async def remediate(state: State, runtime: Runtime[Context]) -> Update:
    """Plan the next write for the deficit diagnosed in the last round, and search if its repair does.

    If the search fails, or no time is left for a repair that costs any, the loop stops and keeps the drafts so far.
    """
    context = runtime.context
    last = state["rounds"][-1]
    assert last.diagnosis is not None
    deficit = context.deficits[last.diagnosis.deficit]
    with calling("deficit", deficit.name, deficit.repair):
        repair = deficit.repair(state, findings_of(state, context, last))
        require_result(repair, Repair)
    if repair.kind != "conclude" and (late := state.get("cut") or out_of_time(state, context, last.index)):
        return {"stop_reason": late}
    update: dict[str, object] = {"set_aside": repair.drop} if repair.drop else {}
    queries: tuple[str, ...] = ()
    if context.may_search and repair.search is not None:
        queries = _unasked(repair.search, state.get("queries", ()))
    elif context.may_search and deficit.retrieves:
        queries = _follow_up_queries(state["question"], last, state.get("queries", ()))
    if queries and context.retriever is not None:
        known = frozenset(found.passage.id for found in state.get("evidence", ()))
        try:
            searching = context.retriever.retrieve(queries, k=context.settings.retrieval_top_k, exclude=known)
            left = None if context.deadline is None else context.deadline - time.monotonic()
            retrieval = await asyncio.wait_for(searching, left)
        except Exception as error:  # noqa: BLE001  # a caller's retriever may raise anything
            _LOG.warning("A follow-up search failed; the drafts so far are kept: %s", error)
            return {"stop_reason": DeadlineError.stop_reason if context.is_late else "search_failed"}
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


def _follow_up_queries(question: str, last: Round, asked: Sequence[str]) -> tuple[str, ...]:
    """The queries of a repair: those of the diagnosis that were not asked before and do not restate the question.

    If none is left, the entities that draft and second answer arrived at, each with the question's content words that
    the draft's quotes do not contain.
    """
    suggested = last.diagnosis.suggested_queries if last.diagnosis is not None else ()
    fresh = [query for query in suggested if not (tokens(query) and jaccard(query, question) >= _RESTATED)]
    if new := _unasked(fresh, asked):
        return new
    reached = [] if last.draft.abstained else [last.draft.short_answer]
    if last.second_answer is not None and not is_abstention(last.second_answer.short_answer):
        reached.append(last.second_answer.short_answer)
    entities = [answer for answer in dict.fromkeys(reached) if normalised(answer) not in VERDICTS]
    held = spaced(" ".join(last.draft.quotes))
    content = [word for word in dict.fromkeys(words(question)) if word not in stop_words()]
    still_open = " ".join(word for word in content if f" {word} " not in held)
    return _unasked([f"{entity} {still_open}".strip() for entity in entities], asked)


def _unasked(queries: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Queries not asked before, without duplicates; word order, case and punctuation are ignored."""
    seen = {tokens(query) for query in asked}
    fresh: list[str] = []
    for query in queries:
        said = tokens(query)
        if said and said not in seen:
            seen.add(said)
            fresh.append(query)
    return tuple(fresh)
