"""The baseline: retrieve once, answer once, with a plain prompt."""

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.messages import messages
from meta_agent_rag.agent.packing import pack
from meta_agent_rag.agent.replies import Line, ReplyModel, Short
from meta_agent_rag.agent.retrieve import first_evidence
from meta_agent_rag.agent.state import Draft, Round
from meta_agent_rag.grounding.abstention import is_abstention
from meta_agent_rag.llm.ledger import total

from .method import Method, Task


class _Reply(ReplyModel):
    answer: Line
    short_answer: Short


async def answer(engine: Engine, task: Task) -> Answer:
    """One retrieval, one call of the flash tier."""
    session = engine.model.session(task.id, method=METHOD.name)
    first = await first_evidence(task.question, task.evidence, task.retriever, k=engine.settings.retrieval_top_k)
    packed = pack(first.found, engine.model.evidence_tokens())
    prompt = messages(engine.settings, METHOD.name, task.question, packed)
    reply = await session.ainvoke("baseline", prompt, _Reply)
    draft = Draft(answer=reply.answer, short_answer=reply.short_answer, abstained=is_abstention(reply.short_answer))
    spent = total(session.rows)
    only = Round(
        index=0,
        draft=draft,
        packing=packed.packing,
        evidence_ids=tuple(item.passage.id for item in first.found),
        calls=spent.calls,
        cost_usd=spent.cost_usd,
    )
    return Answer(
        question=task.question,
        text=draft.answer,
        short_answer=draft.short_answer,
        stop_reason="single_pass",
        chosen=0,
        rounds=(only,),
        evidence=first.found,
        dropped=first.dropped,
        calls=tuple(session.rows),
    )


METHOD = Method(
    name="standard_rag",
    citation="Lewis et al.: Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS 2020, "
    "arXiv:2005.11401; one retrieval and one answer, as the baseline of Zhou et al. 2024",
    answer=answer,
)
