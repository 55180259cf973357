"""The baseline: retrieve once, answer once, with a plain prompt."""

from meta_agent_rag.agent.engine import Answer, Engine

from .inquiry import AnswerReply, Inquiry
from .method import Method, MethodTask


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """One retrieval, one call of the flash tier."""
    inquiry = Inquiry.of(engine, task)
    packed = await inquiry.first_evidence()
    reply = await inquiry.ask("baseline", "standard_rag", AnswerReply, packed)
    return inquiry.answer(reply.answer, reply.short_answer, packed)


METHOD = Method(
    name="standard_rag",
    citation="Lewis et al.: Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS 2020, "
    "arXiv:2005.11401; one retrieval and one answer, as the baseline of Zhou et al. 2024",
    about="one retrieval, one answer",
    departures="an instruction-tuned model instead of a fine-tuned one",
    answer=answer,
)
