"""Several sampled chains of thought; the answer that most of them reach.

The equal-cost control of the loop: what the same money buys by repeated sampling. The paper samples up to 40
chains at 0.5 to 0.7 after worked examples; here it is `SELF_CONSISTENCY_SAMPLES` of them at 0.7, with
`chain_of_thought`'s instruction, or, with a budget, as few as spend at least that much. Reasoning models
ignore the temperature.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import Packed
from meta_agent_rag.errors import StructuredOutputError
from meta_agent_rag.llm.ledger import total
from meta_agent_rag.llm.messages import Sampling
from meta_agent_rag.text.normalise import normalised

from .chain_of_thought import ChainOfThought, chain
from .inquiry import Inquiry
from .method import Method, MethodTask

TEMPERATURE = 0.7
MOST_CHAINS = 100


async def answer(engine: Engine, task: MethodTask) -> Answer:
    """One retrieval, as many chains as the setting says, and their vote."""
    inquiry = Inquiry.of(engine, task)
    packed = await inquiry.first_evidence()
    drawing = _Drawing(inquiry=inquiry, packed=packed)
    if task.budget is None:
        await drawing.draw(engine.settings.self_consistency_samples)
    else:
        await drawing.spend(task.budget)
    elected = majority(drawing.chains())
    return inquiry.answer(elected.text, elected.short_answer, packed, "majority")


@dataclass(kw_only=True)
class _Drawing:
    """Chains in sampling order, with the errors of those that could not be parsed."""

    inquiry: Inquiry
    packed: Packed
    drawn: list[ChainOfThought | BaseException] = field(default_factory=list)

    async def draw(self, count: int) -> None:
        """Sample more chains."""
        if not self.drawn:
            # the first one alone, so that the others find the prompt in the provider's prefix cache
            self.drawn.append(await self._one(0))
            count -= 1
        if not _lost(self.drawn[0]):
            first = len(self.drawn)
            self.drawn += await asyncio.gather(*(self._one(first + more) for more in range(count)))

    async def spend(self, tokens: int) -> None:
        """Sample until that many tokens are spent, in batches sized to use up the rest."""
        await self.draw(1)
        while not any(map(_lost, self.drawn)) and len(self.drawn) < MOST_CHAINS:
            sums = total(self.inquiry.session.rows)
            spent = sums.prompt_tokens + sums.completion_tokens
            if spent >= tokens or not spent:
                return
            wanted = missing_chains(tokens, spent, len(self.drawn))
            await self.draw(min(wanted, MOST_CHAINS - len(self.drawn)))

    def chains(self) -> list[ChainOfThought]:
        """The usable chains; raises only if none is usable, or if asking again would not help."""
        chains = [reply for reply in self.drawn if isinstance(reply, ChainOfThought)]
        faults = [fault for fault in self.drawn if isinstance(fault, BaseException)]
        for fault in faults:
            if _lost(fault) or not chains:
                raise fault
        if faults:
            self.inquiry.notes.append(f"{len(faults)} of {len(self.drawn)} chains could not be read and had no vote")
        return chains

    async def _one(self, draw: int) -> ChainOfThought | BaseException:
        sampling = Sampling(temperature=TEMPERATURE, draw=draw)
        (outcome,) = await asyncio.gather(chain(self.inquiry, self.packed, sampling), return_exceptions=True)
        return outcome


def missing_chains(tokens: int, spent: int, drawn: int) -> int:
    """The fewest further chains that use up the tokens, at what the drawn ones took on average; at least 1."""
    return max(math.ceil((tokens - spent) * drawn / spent), 1)


def _lost(outcome: ChainOfThought | BaseException) -> bool:
    """Is it an error that asking again would not fix?"""
    return isinstance(outcome, BaseException) and not isinstance(outcome, StructuredOutputError)


def majority(chains: Sequence[ChainOfThought]) -> ChainOfThought:
    """The first chain with the most frequent normalised answer; in a tie, the earliest answer."""
    votes = Counter(normalised(reply.short_answer) for reply in chains)
    return max(chains, key=lambda reply: votes[normalised(reply.short_answer)])


METHOD = Method(
    name="self_consistency",
    citation="Wang et al.: Self-Consistency Improves Chain of Thought Reasoning in Language Models, ICLR 2023, "
    "arXiv:2203.11171",
    about="`SELF_CONSISTENCY_SAMPLES` chains of thought at temperature 0.7, then a majority vote",
    departures="fewer chains than the paper's 40",
    answer=answer,
    samples=True,
)
