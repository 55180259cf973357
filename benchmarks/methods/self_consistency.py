"""Several chains of thought, drawn at a temperature; the answer that most of them reach.

The equal-cost control of the loop: what the same money buys by asking again. The paper draws up to 40
chains at 0.5 to 0.7 after worked examples; here it is `SELF_CONSISTENCY_SAMPLES` of them at 0.7, after
`chain_of_thought`'s instruction. A model that thinks first ignores the temperature.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting.packing import Packed
from meta_agent_rag.errors import StructuredOutputError
from meta_agent_rag.llm.exchange import Sampling
from meta_agent_rag.text.normalise import normalised

from .chain_of_thought import ChainReply, chain
from .inquiry import Inquiry
from .method import Method, MethodTask

TEMPERATURE = 0.7


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """One retrieval, as many chains as the setting says, and their vote."""
    inquiry = Inquiry.of(engine, task)
    packed = await inquiry.first_evidence()
    elected = majority(await _chains(inquiry, packed, engine.settings.self_consistency_samples))
    return inquiry.answer(elected.text, elected.short_answer, packed, "majority")


async def _chains(inquiry: Inquiry, packed: Packed, count: int) -> list[ChainReply]:
    """All chains in the order of their draws; raises only where not one of them can be used."""

    async def drawn(draw: int) -> ChainReply:
        return await chain(inquiry, packed, Sampling(temperature=TEMPERATURE, draw=draw))

    # the first one alone, so that the others find the prompt in the provider's prefix cache
    drawings = [*await asyncio.gather(drawn(0), return_exceptions=True)]
    if not _lost(drawings[0]):
        others = (drawn(draw) for draw in range(1, count))
        drawings += await asyncio.gather(*others, return_exceptions=True)
    chains = [reply for reply in drawings if isinstance(reply, ChainReply)]
    faults = [fault for fault in drawings if isinstance(fault, BaseException)]
    for fault in faults:
        if _lost(fault) or not chains:
            raise fault
    if faults:
        inquiry.notes.append(f"{len(faults)} of {count} chains could not be read and had no vote")
    return chains


def _lost(outcome: ChainReply | BaseException) -> bool:
    """Is it a fault that asking again would not repair?"""
    return isinstance(outcome, BaseException) and not isinstance(outcome, StructuredOutputError)


def majority(chains: Sequence[ChainReply]) -> ChainReply:
    """The first chain with the answer that most chains reach, once normalised; of a tie, the earliest answer."""
    votes = Counter(normalised(reply.short_answer) for reply in chains)
    return max(chains, key=lambda reply: votes[normalised(reply.short_answer)])


METHOD = Method(
    name="self_consistency",
    citation="Wang et al.: Self-Consistency Improves Chain of Thought Reasoning in Language Models, ICLR 2023, "
    "arXiv:2203.11171",
    about="`SELF_CONSISTENCY_SAMPLES` chains of thought at temperature 0.7, then a majority vote",
    departures="fewer chains than the paper's 40",
    answer=answer,
)
