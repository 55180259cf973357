"""Checks of a plan in code, before any look-up is paid for."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...discovery import calling, require_result
from ...text.names import content_words, spaced
from ...text.normalise import normalised, tokens
from .operator import Operators
from .plan import Chain, Plan, references
from .support import names_in
from .wording import direction, mended, other_choice, strays

_COMPARISONS = ("earliest", "latest", "most", "least")
_RESTATED = 0.8
"""Jaccard similarity of the words of fact and question from which a fact counts as the question itself."""


def directed(plan: Plan, question: str) -> Plan:
    """The plan with the direction of its comparison, and births and deaths, corrected to match the question.

    A comparison that asks about only one of two candidates is extended to the other.
    """
    plan = _completed(plan, question)
    said = direction(question)
    operator = said if said and plan.operator in {"earliest", "latest"} else plan.operator
    chains = tuple(replace(chain, facts=tuple(mended(question, fact) for fact in chain.facts)) for chain in plan.chains)
    return Plan(operator=operator, chains=chains)


def _completed(plan: Plan, question: str) -> Plan:
    if len(plan.chains) != 1 or plan.operator not in _COMPARISONS:
        return plan
    (chain,) = plan.chains
    other = other_choice(question, chain.of)
    facts = tuple(re.sub(re.escape(chain.of), lambda _: other or "", fact, flags=re.I) for fact in chain.facts)
    if other is None or facts == chain.facts:
        return plan
    return replace(plan, chains=(chain, Chain(of=other, facts=facts)))


Check: TypeAlias = Callable[[Plan, str, Operators], str | None]
"""Maps a plan, its question and the operators to the plan's fault, worded for the planner."""


def flaw_of(plan: Plan, question: str, operators: Operators) -> str | None:
    """Why a plan cannot be looked up at all: the only check in an ablation without plan checks."""
    if plan.operator not in operators:
        return f"there is no operator {plan.operator!r}"
    if not plan.chains:
        return "it has no fact"
    return next((fault for chain in plan.chains if (fault := _reference_fault(chain)) is not None), None)


def fault_of(plan: Plan, question: str, operators: Operators) -> str | None:
    """What is wrong with a plan, worded for the planner; `None` if it may be looked up.

    Every fact but the last must be used by a later one, references must point backwards, no fact may restate the
    question or occur twice, a fact without references must name something from the question, facts and question must
    ask for the same kind of thing, and the operator must fit.
    """
    if flaw := flaw_of(plan, question, operators):
        return flaw
    operator = operators[plan.operator]
    with calling("operator", operator.name, operator.check):
        unfit = operator.check(question, plan)
        require_result(unfit, str, or_none=True)
    every = [fact for chain in plan.chains for fact in chain.facts]
    faults = (
        *(_unused(chain) for chain in plan.chains),
        *(_fact_fault(fact, question) for fact in every),
        _twice(every),
        unfit,
        strays(question, every),
    )
    return next((fault for fault in faults if fault is not None), None)


def _fact_fault(fact: str, question: str) -> str | None:
    if strange := _strange_name(fact, question):
        return f"the fact {fact!r} names {strange!r}, which the question does not"
    if "#" not in fact and not _names_something(fact, question):
        return f"the fact {fact!r} names nothing that the question names"
    return f"the fact {fact!r} restates the question" if _restates(fact, question) else None


def _twice(facts: Sequence[str]) -> str | None:
    asked = [normalised(fact) for fact in facts if "#" not in fact]
    twice = next((fact for fact in facts if asked.count(normalised(fact)) > 1), None)
    return f"the fact {twice!r} comes twice" if twice else None


def _reference_fault(chain: Chain) -> str | None:
    for index, fact in enumerate(chain.facts):
        if any(not 0 <= place < index for place in references(fact, index)):
            return f"the fact {fact!r} refers to a fact that does not come before it"
    return None


def _unused(chain: Chain) -> str | None:
    used = {place for index, fact in enumerate(chain.facts) for place in references(fact, index)}
    for index, fact in enumerate(chain.facts[:-1]):
        if index not in used:
            return f"no later fact uses the value of {fact!r}"
    return None


def _strange_name(fact: str, question: str) -> str | None:
    """A name in a fact that is not in the question: small models copy names from the examples."""
    asked = spaced(question)
    names = names_in(fact)
    return next((name for name in names if not any(f" {word} " in asked for word in content_words(name))), None)


def _names_something(fact: str, question: str) -> bool:
    """Does a fact contain a word of a name in the question? Otherwise it could be about anything."""
    said = spaced(fact)
    named = names_in(question)
    return not named or any(f" {word} " in said for name in named for word in content_words(name))


def is_whole(plan: Plan, question: str) -> bool:
    """Is the plan's only fact the question itself? Then the planner sees no way to decompose it."""
    every = [fact for chain in plan.chains for fact in chain.facts]
    return len(every) == 1 and _restates(every[0], question)


def _restates(fact: str, question: str) -> bool:
    one, other = tokens(fact), tokens(question)
    return bool(one) and len(one & other) / len(one | other) >= _RESTATED
