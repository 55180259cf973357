"""A plan: the individual facts that a question needs, in chains, and the operator that combines their values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REFERENCE = re.compile(r"#(\d*)")


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
    """A plan that passed the checks; if there is none, `fault` says why."""

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
    for the end of the previous chain, which this chain then continues. A fact repeated immediately is asked once.
    """
    chains: list[Chain] = []
    for chain in plan.chains:
        facts = tuple(dict.fromkeys(fact.strip() for fact in chain.facts if fact.strip()))
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
