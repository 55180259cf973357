"""Derives an answer: a plan, one look-up per fact, and an operator in code."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ...discovery import calling, require_result
from ..context import Context
from .derivation import LEFT_OUT, Derivation, Fact, Plan, Planned, references, resolved
from .look_up import look_up
from .operator import Operand, Operators, Outcome
from .planning import plan_for
from .reading import Reading, joined, read_on

_READS_OFF = "last"
"""The operator that combines nothing: it reads the value at the end of a chain."""


async def make_plan(context: Context, question: str, *, round_: int) -> Planned:
    """The plan of a question, made without evidence. Raises only errors that must stop the run."""
    if "derivation" in context.settings.loop_without:
        return Planned(plan=None, fault=LEFT_OUT)
    return await plan_for(context.model, context.settings, question, context.operators, round_=round_)


async def derive(
    context: Context, question: str, made: Planned, reading: Reading, *, round_: int
) -> tuple[Derivation, Reading]:
    """The derivation of a planned question, and the evidence that it ends with.

    Raises only errors that must stop the run.
    """
    if made.plan is None:
        return Derivation(plan=None, dropped=made.fault), reading
    return await look_up_facts(context, question, made.plan, reading, context.operators, round_=round_)


async def look_up_facts(
    context: Context,
    question: str,
    plan: Plan,
    reading: Reading,
    operators: Operators,
    *,
    round_: int,
    known: Sequence[Fact] = (),
) -> tuple[Derivation, Reading]:
    """The derivation of a plan, and the evidence that it ends with; facts in `known` are not looked up again.

    Chains are looked up concurrently, each in what it finds itself, so that a prompt never depends on their timing.
    """
    looking = [
        asyncio.create_task(_chain(context, plan, place, reading, known=known, round_=round_))
        for place in range(len(plan.chains))
    ]
    try:
        chains = await asyncio.gather(*looking)
    except BaseException:
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)  # no call goes on after the question has ended
        raise
    facts = [fact for chain, _ in chains for fact in chain]
    return _concluded(context, question, plan, facts, operators), joined(context, reading, [read for _, read in chains])


def _concluded(context: Context, question: str, plan: Plan, facts: Sequence[Fact], operators: Operators) -> Derivation:
    if "operators" in context.settings.loop_without and plan.operator != _READS_OFF:
        return Derivation(plan=plan, facts=tuple(facts))
    # operators rely on the checks of their plans
    unchecked = (ValueError, IndexError) if "plan_checks" in context.settings.loop_without else ()
    operator = operators[plan.operator]
    with calling("operator", operator.name, operator.combine), suppress(*unchecked):
        return apply_operator(question, plan, facts, operators)
    return Derivation(plan=plan, facts=tuple(facts))


async def _chain(
    context: Context, plan: Plan, place: int, reading: Reading, *, known: Sequence[Fact], round_: int
) -> tuple[list[Fact], Reading]:
    chain = plan.chains[place]
    facts: list[Fact] = []
    values: dict[int, str] = {}
    for index, fact in enumerate(chain.facts):
        used = references(fact, index)
        if any(not values[one] for one in used):
            break  # what it refers to is unknown
        asked = resolved(fact, index, values)
        entity = values[used[-1]] if used else ""
        found = next((one for one in known if one.asked == asked), None)
        if found is None:
            if used and facts[used[-1]].open is None:
                reading = await read_on(context, reading, entity, [entity, asked])
            found = await look_up(
                context, asked, entity, reading.packed, chain=place, index=index, of=chain.of, round_=round_
            )
            found = replace(found, searched=reading.was_searched(found.passage_id))
        facts.append(replace(found, chain=place, index=index))
        values[index] = found.value
    return facts, reading


def apply_operator(question: str, plan: Plan, facts: Sequence[Fact], operators: Operators) -> Derivation:
    """The conclusion from the facts; a chain without its last value provides no operand."""
    operator = operators[plan.operator]
    operands: list[Operand] = []
    for place, chain in enumerate(plan.chains):
        values = tuple(fact.value for fact in facts if fact.chain == place)
        if len(values) >= len(chain.facts) and values[-1]:
            operands.append(Operand(of=chain.of, value=values[-1], values=values))
    outcome = operator.combine(question, operands) if len(operands) == len(plan.chains) else None
    require_result(outcome, Outcome, or_none=True)
    return Derivation(
        plan=plan,
        facts=tuple(facts),
        answer=outcome.answer if outcome else "",
        because=outcome.because if outcome else "",
        compared=operator.compares and outcome is not None,
    )
