"""A plan, its facts and its conclusion.

A plan holds the single facts that a question needs, in chains, and the operator that combines their values; a
derivation holds each fact with its value and its place in the evidence, and what follows from them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...text.normalise import normalised

_REFERENCE = re.compile(r"#(\d{0,2})")


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Facts to look up one after the other, each phrased as a question.

    In a fact `#` stands for the value of the preceding fact and `#n` for that of the chain's n-th fact, counted from 1.
    `of` is the subject of the chain: in a comparison, the candidate as the question names it.
    """

    of: str
    facts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The facts to look up for a question, and the operator that combines the chains' last values."""

    operator: str
    chains: tuple[Chain, ...]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan that may be looked up; if there is none, `fault` says why."""

    plan: Plan | None
    fault: str | None = None


def references(fact: str, index: int) -> tuple[int, ...]:
    """The places, from 0, of the facts that the fact at `index` of its chain refers to.

    >>> references("Where was # born?", 1), references("Did #1 meet #2?", 2)
    ((0,), (0, 1))
    """
    return tuple(int(number) - 1 if number else index - 1 for number in _REFERENCE.findall(fact))


def resolved(fact: str, index: int, values: Mapping[int, str]) -> str:
    """The fact with its references replaced by values; `values` are keyed by place."""

    def value(match: re.Match[str]) -> str:
        return values[int(match[1]) - 1 if match[1] else index - 1]

    return _REFERENCE.sub(value, fact)


def tidied(plan: Plan) -> Plan:
    """The plan with slips corrected wherever only one reading is possible.

    In a chain's first fact, `#` can only stand for the subject of the chain; if a later chain has none, `#` stands
    for the end of the previous chain, which this chain then continues.
    """
    chains: list[Chain] = []
    for chain in plan.chains:
        facts = tuple(fact.strip() for fact in chain.facts if fact.strip())
        if not facts:
            continue
        of = chain.of.strip().rstrip("?").rstrip()
        if "#" in facts[0] and of:
            facts = (of.join(_REFERENCE.split(facts[0])[::2]), *facts[1:])
        elif "#" in facts[0] and chains:
            before = chains.pop()
            of, facts = before.of, (*before.facts, *facts)
        chains.append(Chain(of=of, facts=facts))
    return Plan(operator=plan.operator, chains=tuple(chains))


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
    `searched` means that its passage was found by a search between two calls, after the first draft.
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
    searched: bool = False


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
        """Whether there is an answer whose facts all have a reliable value, none of them from memory."""
        return bool(self.answer) and not self.open_facts and not any(fact.from_memory for fact in self.facts)
