"""Asks for a plan, checks it in code, and on failure asks once more, giving the reason."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, create_model

from ...errors import ModelError
from ...llm.client import ModelSession
from ...llm.messages import Message
from ...prompts import prompt
from ...settings import Settings
from ..prompting.replies import ReplyModel
from .derivation import CALL_FAILED, NO_GRAMMAR
from .operator import Operators
from .plan import Chain, Plan, Planned, tidied
from .plan_checks import Check, directed, fault_of, flaw_of, is_whole
from .unfolding import unfolded


class ChainReply(ReplyModel):
    """A chain of the reply."""

    # `of` may be missing, but the schema requires it: optional keys are written last under a schema, and a model that
    # has not yet named the subject of its chain restates the question
    model_config = ConfigDict(json_schema_extra={"required": ["of", "facts"]})

    of: Annotated[str, Field(json_schema_extra={"maxLength": 120})] = ""
    facts: Annotated[list[str], Field(json_schema_extra={"minItems": 1, "maxItems": 4})]


class PlanReply(ReplyModel):
    """Stage `plan`; the registry's names replace `operator`'s type in `plan_schema`."""

    chains: Annotated[list[ChainReply], Field(json_schema_extra={"minItems": 1, "maxItems": 4})]
    operator: str


@cache
def plan_schema(names: tuple[str, ...]) -> type[PlanReply]:
    """The reply's schema: `operator` is one of the registry's names."""
    operator = Literal[names]  # type: ignore[valid-type]  # known at run time alone
    return create_model("PlanReply", __base__=PlanReply, operator=(operator, ...))


async def plan_for(
    model: ModelSession, settings: Settings, question: str, operators: Operators, *, round_: int
) -> Planned:
    """The plan of a question: from its grammar if possible, else from a call that sees only the question.

    Raises only errors that must stop the run.
    """
    by_grammar = None if "grammar" in settings.loop_without else unfolded(question)
    if by_grammar is not None and by_grammar.operator in operators:
        return Planned(plan=by_grammar)
    if settings.plans == "grammar":
        return Planned(plan=None, fault=NO_GRAMMAR)
    asked = _messages(settings, question, operators)
    if "plan_checks" in settings.loop_without:
        return (await _asked(model, question, operators, asked, round_=round_, fault_in=flaw_of))[0]
    planned, reply = await _asked(model, question, operators, asked, round_=round_)
    if not reply:
        return planned
    fault = prompt("plan_again", settings.prompts_dir).text(fault=planned.fault)
    again = (*asked, Message(role="assistant", content=reply), Message(role="user", content=fault))
    return (await _asked(model, question, operators, again, round_=round_))[0]


async def _asked(
    model: ModelSession,
    question: str,
    operators: Operators,
    asked: Sequence[Message],
    *,
    round_: int,
    fault_in: Check = fault_of,
) -> tuple[Planned, str]:
    """The result of one call, and the reply to show when asking again; empty if asking again would not help."""
    try:
        reply = await model.ainvoke("plan", asked, plan_schema(tuple(operators)), round_=round_)
    except ModelError as error:
        if error.stops_run:
            raise
        return Planned(plan=None, fault=f"{CALL_FAILED}{error}"), ""
    chains = tuple(Chain(of=chain.of, facts=tuple(chain.facts)) for chain in reply.chains)
    plan = directed(tidied(Plan(operator=reply.operator, chains=chains)), question)
    fault = fault_in(plan, question, operators)
    settled = fault is None or is_whole(plan, question)  # asked again, it would only invent facts
    return Planned(plan=None if fault else plan, fault=fault), "" if settled else _written(plan)


def _messages(settings: Settings, question: str, operators: Operators) -> tuple[Message, ...]:
    """The task, every operator's examples, and the question; all but the last are the same for every question."""
    messages = [Message(role="system", content=prompt("plan", settings.prompts_dir).text())]
    for example, plan in shown(operators):
        messages.append(Message(role="user", content=_asking(settings, example)))
        messages.append(Message(role="assistant", content=_written(plan)))
    messages.append(Message(role="user", content=_asking(settings, question)))
    return tuple(messages)


def shown(operators: Operators) -> list[tuple[str, Plan]]:
    """The examples in the order of the prompt: one per operator in turn, with each operator's first ones last.

    Small models favour what they read last, so the operators are interleaved there.
    """
    most = max((len(operator.examples) for operator in operators.values()), default=0)
    turns = range(most - 1, -1, -1)
    return [one.examples[turn] for turn in turns for one in operators.values() if turn < len(one.examples)]


def _asking(settings: Settings, question: str) -> str:
    return prompt("question", settings.prompts_dir).text(question=question)


def _written(plan: Plan) -> str:
    chains = [{"of": chain.of, "facts": list(chain.facts)} for chain in plan.chains]
    return json.dumps({"chains": chains, "operator": plan.operator}, ensure_ascii=False)
