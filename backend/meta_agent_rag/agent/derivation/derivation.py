"""The contents of a derivation: each fact with its value and its place in the evidence, and the conclusion."""

from dataclasses import dataclass

from ...text.normalise import normalised
from .plan import Plan

LEFT_OUT = "derivations are left out"
NO_GRAMMAR = "the question's grammar gives no plan"
CALL_FAILED = "the model call failed: "
"""Why there is no plan, if none was made: what `dropped` is, or how it begins."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One looked-up fact.

    `chain` and `index` are its place in the plan, from 0; `asked` is its question with every reference resolved;
    `entity` what it is about. `value` is the result of the look-up, `passage_id` and `sentence` where it occurs,
    `logprob` the mean log-probability of its tokens (<= 0). `open` says why the value is unreliable, or is `None`.
    """

    chain: int
    index: int
    asked: str
    entity: str
    value: str
    passage_id: str | None = None
    sentence: str = ""
    logprob: float | None = None
    open: str | None = None
    from_memory: bool = False


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """An answer that follows from facts.

    `answer` is empty if the facts give none; `because` explains in one sentence how it follows. `compared` means
    that an operator compared values in code, so the answer outranks a vote. `dropped` says why there is no plan.
    """

    plan: Plan | None
    facts: tuple[Fact, ...] = ()
    answer: str = ""
    because: str = ""
    compared: bool = False
    dropped: str | None = None

    @property
    def why_none(self) -> str:
        """Why there is no plan: it was not made, or it was made and rejected; one clause without a full stop."""
        why = (self.dropped or "it has no facts").rstrip(".")
        made = why not in {LEFT_OUT, NO_GRAMMAR} and not why.startswith(CALL_FAILED)
        return f"the plan was rejected: {why}" if made else why

    @property
    def open_facts(self) -> tuple[Fact, ...]:
        """The facts without a reliable value, in the order of the plan."""
        return tuple(fact for fact in self.facts if fact.open is not None)

    @property
    def earlier_hops(self) -> frozenset[str]:
        """The normalised values of earlier hops: a route that answers with one stopped short."""
        if self.plan is None or len(self.plan.chains) != 1:
            return frozenset()
        last = len(self.plan.chains[0].facts) - 1
        values = [normalised(fact.value) for fact in self.facts if fact.index < last and fact.open is None]
        return frozenset(value for value in values if value and value != normalised(self.answer))

    @property
    def stands(self) -> bool:
        """Is there an answer whose facts all have a reliable value, none of them from memory?"""
        return bool(self.answer) and not self.open_facts and not any(fact.from_memory for fact in self.facts)
