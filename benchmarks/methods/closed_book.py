"""What the model knows from training: the question alone, without any evidence.

The paper fine-tunes a model to answer in this way; here an instruction-tuned model is asked, without examples.
"""

from meta_agent_rag.agent.engine import Answer, Engine

from .inquiry import AnswerReply, Inquiry
from .method import Method, MethodTask


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """One call, no retrieval."""
    inquiry = Inquiry.of(engine, task)
    reply = await inquiry.ask("baseline", "closed_book", AnswerReply, None)
    return inquiry.answer(reply.answer, reply.short_answer, None)


METHOD = Method(
    name="closed_book",
    citation="Roberts, Raffel, Shazeer: How Much Knowledge Can You Pack Into the Parameters of a Language Model?, "
    "EMNLP 2020, arXiv:2002.08910",
    about="one call without evidence",
    departures="an instruction-tuned model instead of a fine-tuned one",
    answer=answer,
)
