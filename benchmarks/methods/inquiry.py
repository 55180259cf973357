"""One question in progress with a baseline: its calls, the evidence collected so far, and the resulting answer.

All baselines search, pack and count through it, so that a method's own file contains only its algorithm.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.agent.prompting import Line, Packed, ReplyModel, Short, messages, pack
from meta_agent_rag.agent.retrieve import first_evidence
from meta_agent_rag.agent.state import Draft, MethodStop, Packing, Round, add_found
from meta_agent_rag.errors import StructuredOutputError
from meta_agent_rag.grounding.abstention import is_abstention
from meta_agent_rag.grounding.short_answer import without_disambiguation
from meta_agent_rag.llm.client import ModelSession
from meta_agent_rag.llm.ledger import total
from meta_agent_rag.llm.messages import Message, Sampling
from meta_agent_rag.prompts import estimate_tokens, phrase
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.retrieval.screening import Dropped
from meta_agent_rag.text.normalise import normalised
from meta_agent_rag.text.sentences import sentences

from .method import MethodTask

_NOTES_TOKENS = 800
"""Tokens of a method's own notes up to which the evidence keeps its full budget."""
_CONCLUSION = re.compile(r"\banswer is\b", re.IGNORECASE)
_GREEDY = Sampling()

Said = TypeVar("Said", bound=BaseModel)


class AnswerReply(ReplyModel):
    """An answer and its short answer."""

    answer: Line
    short_answer: Short


@dataclass(kw_only=True)
class Inquiry:
    """The state of one question: `found` only grows, so that a prompt's prefix stays; `rounds` holds full drafts."""

    engine: Engine
    task: MethodTask
    session: ModelSession
    found: tuple[Found, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    notes: list[str] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    _counted: int = field(default=0, init=False)

    @classmethod
    def of(cls, engine: Engine, task: MethodTask) -> "Inquiry":
        """A question before its first call; calls and row use the task's name."""
        return cls(engine=engine, task=task, session=engine.model.session(task.id, method=task.method))

    async def first_evidence(self) -> Packed:
        """The evidence of methods that retrieve once: everything supplied, else the k best for the question."""
        task, top_k = self.task, self.engine.settings.retrieval_top_k
        self._add(await first_evidence(task.question, task.evidence, task.retriever, k=top_k))
        return self.packed()

    async def search(self, query: str, *, at_most: int | None = None) -> tuple[Found, ...]:
        """The passages that one search adds: k, or `at_most` if that is less, all of them new."""
        top_k = self.engine.settings.retrieval_top_k
        wanted = top_k if at_most is None else min(top_k, at_most)
        if wanted < 1 or not query.strip():
            return ()
        known = frozenset(found.passage.id for found in self.found)
        return self._add(await self.task.search.retrieve([query], k=wanted, exclude=known))

    def packed(self, beside: str = "") -> Packed:
        """The evidence as the next prompt shows it; long notes `beside` it reduce its budget."""
        excess = max(estimate_tokens(beside) - _NOTES_TOKENS, 0)
        return pack(self.found, max(self.engine.model.evidence_tokens() - excess, 0))

    def shown(self, beside: str = "") -> Packed | None:
        """The same for methods that start without evidence: `None` as long as there is none."""
        return self.packed(beside) if self.found else None

    def prompt(self, name: str, packed: Packed | None, **values: Any) -> tuple[Message, ...]:
        """The messages of a call with a method's prompt; without `packed` the model sees no evidence."""
        return messages(self.engine.settings, name, self.task.question, packed, **values)

    async def ask(
        self,
        stage: str,
        name: str,
        reply: type[Said],
        packed: Packed | None,
        *,
        sampling: Sampling = _GREEDY,
        **values: Any,
    ) -> Said:
        """The reply to a call with a method's prompt, charged to the current round."""
        prompt = self.prompt(name, packed, **values)
        return await self.session.ainvoke(stage, prompt, reply, round_=len(self.rounds), sampling=sampling)

    async def ask_or_note(
        self, what: str, stage: str, name: str, reply: type[Said], packed: Packed | None, **values: Any
    ) -> Said | None:
        """The same; `None`, and a note that `what` was left out, if the model failed twice to send its JSON."""
        try:
            return await self.ask(stage, name, reply, packed, **values)
        except StructuredOutputError:
            self.notes.append(f"{what} was left out: the model did not send the JSON that was asked for")
            return None

    async def write(self, name: str, packed: Packed | None, *, stop: str | None = None, **values: Any) -> str:
        """The text of a step, up to `stop`."""
        sampling = _GREEDY if stop is None else Sampling(stop=(stop,))
        return (await self.session.areply("step", self.prompt(name, packed, **values), sampling=sampling)).text

    async def concluded(self, reasoning: Sequence[str], stop_reason: str, *, alone: bool = False) -> Answer:
        """The answer that a final call derives from the reasoning so far, `alone` or with the evidence."""
        written = "\n".join(reasoning)
        packed = None if alone else self.shown(written)
        reply = await self.ask("baseline", "conclude", AnswerReply, packed, reasoning=so_far(written))
        return self.answer(reply.answer, reply.short_answer, packed, stop_reason)

    def draft(self, text: str, short_answer: str, packed: Packed | None, *, satisfied: bool = False) -> None:
        """Close a round with a full draft; it is charged with the calls since the last one."""
        spent = total(self.session.rows[self._counted :])
        self._counted = len(self.session.rows)
        short = without_disambiguation(short_answer, packed.titles if packed is not None else ())
        one = Round(
            index=len(self.rounds),
            packing=packed.packing if packed is not None else Packing(),
            draft=Draft(answer=text, short_answer=short, abstained=is_abstention(short)),
            evidence_ids=tuple(found.passage.id for found in self.found),
            satisfied=satisfied,
            calls=spent.calls,
            cost_usd=spent.cost_usd,
        )
        self.rounds.append(one)

    def answer(self, text: str, short_answer: str, packed: Packed | None, stop_reason: str = "single_pass") -> Answer:
        """Add a last draft, and return it as the answer."""
        self.draft(text, short_answer, packed)
        return self.last(stop_reason)

    def last(self, stop_reason: str) -> Answer:
        """The last draft as the answer."""
        final = self.rounds[-1]
        return Answer(
            question=self.task.question,
            text=final.draft.answer,
            short_answer=final.draft.short_answer,
            stop_reason=MethodStop(stop_reason),
            chosen=final.index,
            rounds=tuple(self.rounds),
            evidence=self.found,
            dropped=self.dropped,
            calls=tuple(self.session.rows),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _add(self, retrieval: Retrieval) -> tuple[Found, ...]:
        before = len(self.found)
        self.found = add_found(self.found, retrieval.found)
        self.dropped = (*self.dropped, *retrieval.dropped)
        return self.found[before:]


def so_far(written: str) -> str:
    """What was written, or that there is nothing yet, for a prompt."""
    return written or phrase("nothing_yet")


def next_sentence(text: str, written: Sequence[str]) -> str:
    """The first sentence of a continuation; empty if there is none, or if it repeats what was `written` before."""
    first = next((sentence.strip() for sentence in sentences(text.strip()) if sentence.strip()), "")
    known = {normalised(sentence) for sentence in written}
    return "" if normalised(first) in {"", *known} else first


def concludes(sentence: str) -> bool:
    """Whether a sentence ends a chain of thought, by the phrase that FLARE and IRCoT look for?

    >>> concludes("So the answer is Oslo."), concludes("Mira Holt was born in Oslo.")
    (True, False)
    """
    return _CONCLUSION.search(sentence) is not None
