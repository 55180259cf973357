"""Node `remediate` (planning): a deficit becomes a directive, an answer mode and, where needed, a search."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from ..grounding.abstention import is_abstention
from ..grounding.normalise import tokens
from .context import Context
from .deficits import Deficit
from .state import Diagnosis, Plan, Round, State, Update


async def remediate(state: State, runtime: Runtime[Context]) -> Update:
    """Plan the next write for the deficit that the last round was diagnosed with."""
    context = runtime.context
    last = state["rounds"][-1]
    assert last.diagnosis is not None
    deficit = context.deficits[last.diagnosis.deficit]
    update: dict[str, object] = {}
    queries: tuple[str, ...] = ()
    if deficit.retrieves and context.retriever is not None:
        queries = unasked(_wanted(state["question"], last), state.get("queries", ()))
    if queries and context.retriever is not None:
        known = frozenset(found.passage.id for found in state.get("evidence", ()))
        retrieval = await context.retriever.retrieve(queries, k=context.settings.retrieval_top_k, exclude=known)
        update = {"evidence": retrieval.found, "dropped": retrieval.dropped, "queries": queries}
    return {**update, "plan": _plan(deficit, last.diagnosis, queries)}


def _plan(deficit: Deficit, diagnosis: Diagnosis, queries: tuple[str, ...]) -> Plan:
    return Plan(
        deficit=deficit.name,
        directive=deficit.directive,
        answer_mode=deficit.answer_mode,
        suggestion=diagnosis.suggestion,
        queries=queries,
    )


def _wanted(question: str, last: Round) -> Sequence[str]:
    """The critic's queries; where it has none, the question with the entity that the answers arrived at."""
    if last.diagnosis is not None and last.diagnosis.suggested_queries:
        return last.diagnosis.suggested_queries
    reached = [] if last.draft.abstained else [last.draft.short_answer]
    if last.reference is not None and not is_abstention(last.reference.short_answer):
        reached.append(last.reference.short_answer)
    return [f"{question} {entity}" for entity in reached]


def unasked(queries: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """Queries that were not asked before, each once; word order, case and punctuation aside."""
    seen = {tokens(query) for query in asked}
    fresh: list[str] = []
    for query in queries:
        words = tokens(query)
        if words and words not in seen:
            seen.add(words)
            fresh.append(query)
    return tuple(fresh)
