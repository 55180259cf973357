"""Stages of the loop replaced by gold information, so that a run can state what the errors of each stage cost."""

from collections.abc import Sequence

from meta_agent_rag.agent.context import Oracles
from meta_agent_rag.agent.deficits import DeficitRegistry
from meta_agent_rag.agent.engine import Engine
from meta_agent_rag.agent.state import NO_DEFICIT, Draft, Round
from meta_agent_rag.datasets import Question
from meta_agent_rag.retrieval.passage import passages_of
from meta_agent_rag.retrieval.supplied import SuppliedRetriever

from ..methods import MethodTask, named
from ..metrics import score_answer

_CLOSED_BOOK = "closed_book"


def oracles_for(stages: Sequence[str], engine: Engine, question: Question, *, name: str) -> Oracles:
    """The oracles of a row for one question; the oracle `retrieval` is the evidence itself, see `evidence.supplied`.

    The oracle monitor accepts a draft that matches a gold answer exactly. The oracle diagnosis finds nothing wrong
    with such a draft; otherwise it checks whether the model answers correctly without evidence, and whether all
    supporting paragraphs are in the prompt.
    """

    def is_right(draft: Draft) -> bool:
        return score_answer(draft.short_answer, question.golds).em == 1.0

    async def deficit_of(round_: Round) -> str:
        if is_right(round_.draft):
            return NO_DEFICIT
        (closed_book,) = named(_CLOSED_BOOK)
        task = MethodTask(
            id=question.id,
            question=question.text,
            method=f"{name} (closed book)",
            search=SuppliedRetriever(passages=(), encoder=engine.monitor_encoder),
            evidence=(),
        )
        memory = await closed_book.answer(engine, task)
        knows = score_answer(memory.short_answer, question.golds).em == 1.0
        wanted = {passage.id for passage in passages_of(one for one in question.paragraphs if one.is_supporting)}
        complete = wanted <= set(round_.packing.packed_ids) - set(round_.packing.shortened_ids)
        return matching(engine.deficits, knows=knows, complete=complete, round_=round_)

    return Oracles(
        monitor=is_right if "monitor" in stages else None, diagnosis=deficit_of if "diagnosis" in stages else None
    )


def matching(deficits: DeficitRegistry, *, knows: bool, complete: bool, round_: Round) -> str:
    """The deficit for this quadrant; if the registry has none, the one that its rules name."""
    for deficit in deficits:
        if deficit.quadrant == (knows, complete):
            return deficit.name
    return deficits.guess(round_.signals).name
