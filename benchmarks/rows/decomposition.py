"""A data set's decomposition of a question: its gold facts as chains, and how a plan corresponds to them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from meta_agent_rag.agent.derivation.derivation import Chain, Plan, references, resolved
from meta_agent_rag.agent.derivation.look_up import names
from meta_agent_rag.agent.derivation.operator import Operand, Operators
from meta_agent_rag.agent.derivation.values import same_value
from meta_agent_rag.text.names import content_words, spaced, unqualified

from ..metrics import score_answer

_STEM = 5
"""Number of initial letters by which two words count as the same: "director" and "directed"."""
_SHARED = 1 / 3
"""Share of a relation's words that a fact must contain to ask for it."""


@dataclass(frozen=True, kw_only=True)
class GoldFact:
    """A single fact of the data set; MuSiQue's free-text questions have no `subject` and serve as `relation`."""

    subject: str
    relation: str
    value: str


GoldChains = tuple[tuple[GoldFact, ...], ...]


def gold_chains(facts: Iterable[Sequence[str]]) -> GoldChains:
    """The facts as chains: a fact whose subject ends a chain continues it; free-text questions form one chain.

    Several values of one relation count as one fact.
    """
    values: dict[tuple[str, str], list[str]] = {}
    for subject, relation, value in facts:
        values.setdefault((subject, relation), []).append(value)
    chains: list[list[GoldFact]] = []
    for (subject, relation), held in values.items():
        fact = GoldFact(subject=subject, relation=relation, value=", ".join(held))
        chain = next((chain for chain in chains if not subject or names(subject, chain[-1].value)), None)
        if chain is None:
            chains.append(chain := [])
        chain.append(fact)
    return tuple(tuple(chain) for chain in chains)


def gives(plan: Plan, question: str, answer: str, chains: GoldChains, operators: Operators) -> bool:
    """Return whether a plan's operator, applied to the gold values, gives the gold answer."""
    operator = operators.get(plan.operator)
    if operator is None or operator.check(question, plan) is not None:
        return False
    ordered = pairs(plan, chains) or tuple(zip(plan.chains, chains, strict=False))
    if not len(ordered) == len(chains) == len(plan.chains):
        return False
    operands = [
        Operand(of=chain.of, value=gold[-1].value, values=tuple(fact.value for fact in gold)) for chain, gold in ordered
    ]
    outcome = operator.combine(question, operands)
    return outcome is not None and says(outcome.answer, answer)


def says(said: str, meant: str) -> bool:
    """Return whether two values agree as dates, numbers or countries, or in most of their words."""
    return bool(same_value(said, meant)) or score_answer(said, (meant,)).f1 >= 0.5


def pairs(plan: Plan, chains: GoldChains) -> tuple[tuple[Chain, tuple[GoldFact, ...]], ...] | None:
    """The plan's chains, each paired with the gold chain that starts like it; `None` if they do not correspond."""
    left, found = list(chains), []
    if len(plan.chains) != len(chains):
        return None
    for chain in plan.chains:
        match = next((gold for gold in left if begins_alike(chain, gold[0])), None)
        if match is None:
            return None
        left.remove(match)
        found.append((chain, match))
    return tuple(found)


def begins_alike(chain: Chain, first: GoldFact) -> bool:
    """Return whether the first fact of a chain names what the first gold fact is about."""
    return _shares(f"{chain.of} {chain.facts[0]}", first.subject or first.relation)


def _shares(text: str, other: str) -> bool:
    held = spaced(text)
    return any(f" {word} " in held for word in content_words(unqualified(other)))


def asks_for(fact: str, gold: GoldFact) -> bool:
    """Return whether a fact of a plan asks for the relation of a gold fact."""
    pattern = _relations().get(gold.relation.lower())
    if pattern is not None:
        return pattern.search(fact.lower()) is not None
    stems = {word[:_STEM] for word in content_words(fact)}
    wanted = [word[:_STEM] for word in content_words(gold.relation)]
    return sum(word in stems for word in wanted) >= _SHARED * len(wanted)


@cache
def _relations() -> Mapping[str, re.Pattern[str]]:
    text = files(__package__).joinpath("relations.yaml").read_text(encoding="utf-8")
    return {name: re.compile(pattern) for name, pattern in yaml.safe_load(text).items()}


def follows(chain: Chain, gold: Sequence[GoldFact]) -> bool:
    """Return whether a chain asks for the gold facts, one by one, each about the values of the previous ones."""
    if len(chain.facts) != len(gold):
        return False
    values = {index: fact.value for index, fact in enumerate(gold)}
    for index, (fact, meant) in enumerate(zip(chain.facts, gold, strict=True)):
        used = references(fact, index)
        if bool(used) != bool(index) or not asks_for(resolved(fact, index, values), meant):
            return False
    return True
