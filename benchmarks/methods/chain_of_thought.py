"""Steps first, then the answer that follows from them, in one call over the evidence of one retrieval.

The paper shows worked examples and no evidence; here an instruction asks for the steps, and the evidence
is that of `standard_rag`, so that the two differ only in the steps.
"""

from typing import Annotated

from pydantic import Field

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import Packed, ReplyModel, Short
from meta_agent_rag.llm.messages import Sampling

from .inquiry import Inquiry
from .method import Method, MethodTask

_GREEDY = Sampling()


class ChainOfThought(ReplyModel):
    """A chain of thought and its bare final answer."""

    rationale: Annotated[str, Field(json_schema_extra={"maxLength": 450})]
    short_answer: Short

    @property
    def text(self) -> str:
        """The chain as one text; an empty chain is replaced by its answer."""
        return self.rationale.strip() or self.short_answer


async def chain(inquiry: Inquiry, packed: Packed, sampling: Sampling = _GREEDY) -> ChainOfThought:
    """One chain of thought over the evidence; other methods sample several, or use it as a reader."""
    return await inquiry.ask("baseline", "chain_of_thought", ChainOfThought, packed, sampling=sampling)


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """One retrieval, one chain."""
    inquiry = Inquiry.of(engine, task)
    packed = await inquiry.first_evidence()
    reply = await chain(inquiry, packed)
    return inquiry.answer(reply.text, reply.short_answer, packed)


METHOD = Method(
    name="chain_of_thought",
    citation="Wei et al.: Chain-of-Thought Prompting Elicits Reasoning in Large Language Models, NeurIPS 2022, "
    "arXiv:2201.11903",
    about="one retrieval; step-by-step reasoning and the answer in one call",
    departures="an instruction instead of few-shot examples; uses evidence",
    answer=answer,
)
