"""Retrieval interleaved with a chain of thought: each sentence of the chain is the next query.

Retrieve with the question; write the chain's next sentence; retrieve with it; and so on until a sentence says
that "the answer is", or the limits are reached. A reader then answers from scratch over all passages
collected: the chain only serves retrieval. As in the paper, at most 15 passages are collected.

Departures: instructions instead of worked examples, `chain_of_thought`'s prompt as the reader, at most
five sentences whereas the paper allows eight, and the chain ends once it can collect no more passages.
"""

from meta_agent_rag.agent.engine import Answer, Engine

from .chain_of_thought import chain
from .inquiry import Inquiry, concludes, next_sentence, so_far
from .method import Method, MethodTask

PASSAGES = 15
SENTENCES = 5


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """Collect passages along a chain of thought, then read them."""
    inquiry = Inquiry.of(engine, task)
    stop_reason = await _collect(inquiry)
    packed = inquiry.packed()
    reply = await chain(inquiry, packed)
    return inquiry.answer(reply.text, reply.short_answer, packed, stop_reason)


async def _collect(inquiry: Inquiry) -> str:
    """Search along the chain, and say why it ended."""
    query, written = inquiry.task.question, list[str]()
    while True:
        brought = await inquiry.search(query, at_most=PASSAGES - len(inquiry.found))
        if written and not brought:
            return "nothing_new"
        if len(inquiry.found) >= PASSAGES:
            return "max_passages"
        if len(written) == SENTENCES:
            return "max_steps"
        reasoning = " ".join(written)
        packed = inquiry.packed(reasoning)
        said = await inquiry.write("next_sentence", packed, stop="\n", reasoning=so_far(reasoning))
        query = next_sentence(said, written)
        if not query:
            return "no_progress"
        written.append(query)
        if concludes(query):
            return "concluded"


METHOD = Method(
    name="ircot",
    citation="Trivedi, Balasubramanian, Khot, Sabharwal: Interleaving Retrieval with Chain-of-Thought Reasoning for "
    "Knowledge-Intensive Multi-Step Questions, ACL 2023, arXiv:2212.10509",
    about="each sentence of a chain of thought is the next query, up to 15 passages; then `chain_of_thought` "
    "over all of them",
    departures="at most 5 sentences instead of 8; ends once no further passages can be collected",
    answer=answer,
)
