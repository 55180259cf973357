"""Asks for a plan and checks it in code; if that fails, what the question describes makes the plan."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, create_model

from ...discovery import calling, require_result
from ...errors import ModelError
from ...llm.client import ModelSession
from ...llm.messages import Message
from ...settings import Settings
from ...text.names import content_words, spaced
from ...text.normalise import normalised, tokens
from ..prompting import ReplyModel, few_shot
from .derivation import CALL_FAILED, NO_GRAMMAR, Chain, Plan, Planned, references, tidied
from .describing import described
from .look_up import names_in
from .operator import Operators
from .unfolding import is_open, unfolded
from .values import is_closed

PlanCheck: TypeAlias = Callable[[Plan, str, Operators], str | None]
"""Maps a plan, its question and the operators to the plan's fault, worded as a clause."""


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

    If that plan fails its checks, another call points to what the question describes.

    Raises only errors that must stop the run.
    """
    if "#" in question:
        return Planned(plan=None, fault="the question contains '#', which stands for an earlier value in plans")
    by_grammar = None if "grammar" in settings.loop_without else unfolded(question)
    if by_grammar is not None and by_grammar.operator in operators:
        return Planned(plan=by_grammar)
    if settings.plans == "grammar":
        return Planned(plan=None, fault=NO_GRAMMAR)
    examples = [(example, _written(plan)) for example, plan in shown(operators)]
    asked = few_shot(settings, "plan", examples, question)
    if "plan_checks" in settings.loop_without:
        return await _asked(model, question, operators, asked, round_=round_, fault_in=flaw_of)
    planned = await _asked(model, question, operators, asked, round_=round_)
    failed = (planned.fault or "").startswith(CALL_FAILED)
    if planned.plan is not None or failed or not is_open(question):
        return planned
    plan = await described(model, settings, question, round_=round_)
    return planned if plan is None or flaw_of(plan, question, operators) else Planned(plan=plan)


async def _asked(
    model: ModelSession,
    question: str,
    operators: Operators,
    asked: Sequence[Message],
    *,
    round_: int,
    fault_in: PlanCheck | None = None,
) -> Planned:
    try:
        reply = await model.ainvoke("plan", asked, plan_schema(tuple(operators)), round_=round_)
    except ModelError as error:
        if error.stops_run:
            raise
        return Planned(plan=None, fault=f"{CALL_FAILED}{error}")
    chains = tuple(Chain(of=chain.of, facts=tuple(chain.facts)) for chain in reply.chains)
    plan = directed(tidied(Plan(operator=reply.operator, chains=chains)), question)
    fault = (fault_in or fault_of)(plan, question, operators)
    return Planned(plan=None if fault else plan, fault=fault)


def shown(operators: Operators) -> list[tuple[str, Plan]]:
    """The examples in the order of the prompt: one per operator in turn, with each operator's first ones last.

    Small models favour what they read last, so the operators are interleaved there.
    """
    most = max((len(operator.examples) for operator in operators.values()), default=0)
    turns = range(most - 1, -1, -1)
    return [one.examples[turn] for turn in turns for one in operators.values() if turn < len(one.examples)]


def _written(plan: Plan) -> object:
    chains = [{"of": chain.of, "facts": list(chain.facts)} for chain in plan.chains]
    return {"chains": chains, "operator": plan.operator}


_MOST_FACTS = 16
_COMPARISONS = ("earliest", "latest", "most", "least")
_RESTATED = 0.8
"""Jaccard similarity of the words of fact and question from which a fact counts as the question itself."""


def directed(plan: Plan, question: str) -> Plan:
    """The plan with the direction of its comparison, and births and deaths, corrected to match the question.

    A comparison that asks about only one of two candidates is extended to the other.
    """
    plan = _completed(plan, question)
    question = _unnamed(question)
    said = direction(question)
    operator = said if said and plan.operator in {"earliest", "latest"} else plan.operator
    if operator == "same" and all(chain.facts and is_closed(chain.facts[-1]) for chain in plan.chains):
        operator = "both"  # a yes or no has nothing to compare
    chains = tuple(replace(chain, facts=tuple(mended(question, fact) for fact in chain.facts)) for chain in plan.chains)
    return Plan(operator=operator, chains=chains)


def _unnamed(text: str) -> str:
    """A text without its names, whose words say nothing about what it asks: First Place, Dead Man."""
    for name in names_in(text):
        text = text.replace(name, "#")
    return text


def _completed(plan: Plan, question: str) -> Plan:
    if len(plan.chains) != 1 or plan.operator not in _COMPARISONS:
        return plan
    (chain,) = plan.chains
    other = other_choice(question, chain.of)
    facts = tuple(re.sub(re.escape(chain.of), lambda _: other or "", fact, flags=re.I) for fact in chain.facts)
    if other is None or facts == chain.facts:
        return plan
    return replace(plan, chains=(chain, Chain(of=other, facts=facts)))


def flaw_of(plan: Plan, question: str, operators: Operators) -> str | None:
    """Why a plan cannot be looked up at all: the only check in an ablation without plan checks."""
    if plan.operator not in operators:
        return f"there is no operator {plan.operator!r}"
    if not plan.chains:
        return "it has no fact"
    if sum(len(chain.facts) for chain in plan.chains) > _MOST_FACTS:
        return f"it has more than {_MOST_FACTS} facts"
    for chain in plan.chains:
        for index, fact in enumerate(chain.facts):
            if any(not 0 <= place < index for place in references(fact, index)):
                return f"the fact {fact!r} refers to a fact that does not come before it"
    return None


def fault_of(plan: Plan, question: str, operators: Operators) -> str | None:
    """What is wrong with a plan, worded as a clause; `None` if it may be looked up.

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
    asked, said, named = spaced(question), spaced(fact), names_in(question)
    for name in names_in(fact):  # small models copy names from the examples
        if not any(f" {word} " in asked for word in content_words(name)):
            return f"the fact {fact!r} names {name!r}, which the question does not"
    names_something = not named or any(f" {word} " in said for name in named for word in content_words(name))
    if "#" not in fact and not names_something:  # it could be about anything
        return f"the fact {fact!r} names nothing that the question names"
    return f"the fact {fact!r} restates the question" if _restates(fact, question) else None


def _twice(facts: Sequence[str]) -> str | None:
    asked = [normalised(fact) for fact in facts if "#" not in fact]
    twice = next((fact for fact in facts if asked.count(normalised(fact)) > 1), None)
    return f"the fact {twice!r} comes twice" if twice else None


def _unused(chain: Chain) -> str | None:
    used = {place for index, fact in enumerate(chain.facts) for place in references(fact, index)}
    for index, fact in enumerate(chain.facts[:-1]):
        if index not in used:
            return f"no later fact uses the value of {fact!r}"
    return None


def _restates(fact: str, question: str) -> bool:
    one, other = tokens(fact), tokens(question)
    return bool(one) and len(one & other) / len(one | other) >= _RESTATED


_DIRECTIONS: Mapping[str, re.Pattern[str]] = {
    "earliest": re.compile(
        r"\b(?:older|elder|oldest|eldest|earlie(?:r|st)|first|before)\b(?!\s+(?:season|episode|album|edition|single|book))",
        re.IGNORECASE,
    ),
    "latest": re.compile(
        r"\b(?:younger|youngest|later|latest|newer|newest|(?:more|most)\s+recent(?:ly)?|(?<!named )after"
        r"|last(?!\s+(?:names?|season|episode|album|edition|single|book)))\b",
        re.IGNORECASE,
    ),
}
_LIFE: Mapping[str, re.Pattern[str]] = {
    "birth": re.compile(r"\b(?:born|birth\w*|older|elder|oldest|eldest|younger|youngest)\b", re.IGNORECASE),
    "death": re.compile(r"\b(?:die[sd]?|dead|death|dying|killed|buried|burial)\b", re.IGNORECASE),
}
_LIVES = re.compile(r"\b(?:age|aged|lived?|lifespan|old|when|year|date|where|from|native|home\w*)\b", re.IGNORECASE)
"""Words of questions that may be about a birth or a death without naming it."""
_KIN: Mapping[str, re.Pattern[str]] = {
    "female": re.compile(r"\b(?:grand)?mother\b|\bmaternal\b", re.IGNORECASE),
    "male": re.compile(r"\b(?:grand)?father\b|\bpaternal\b", re.IGNORECASE),
}


def direction(question: str) -> str | None:
    """`earliest` or `latest`, if the question's wording says only one of them.

    >>> direction("Which film has the director who is older, A or B?"), direction("Who won more games, A or B?")
    ('earliest', None)
    """
    said = [name for name, words in _DIRECTIONS.items() if words.search(question)]
    return said[0] if len(said) == 1 else None


def other_choice(question: str, one: str) -> str | None:
    """The other of two things that the question offers as a choice; `None` if `one` is neither of them.

    >>> other_choice("Which band was formed first, Red Moth or The Vales?", "Red Moth")
    'The Vales'
    >>> other_choice("Which band was formed first, Red Moth or The Vales?", "The Vales")
    'Red Moth'
    """
    named = re.escape(one.strip())
    if not named:
        return None
    after = re.search(rf"\b{named}\s+or\s+(?P<other>[^?,;]+)", question, re.IGNORECASE)
    before = re.search(rf"(?:^|[,:;?]|\bbetween\b|\bof\b)(?P<other>[^,:;?]+?)\s+or\s+{named}", question, re.IGNORECASE)
    found = after or before
    return found["other"].strip() or None if found else None


_DIED = re.compile(r"^(when|where) did (.+) die\?$", re.IGNORECASE)
_BORN = re.compile(r"^(when|where) was (.+) born\?$", re.IGNORECASE)
_PARENTS = {"male": ("mother", "father"), "female": ("father", "mother")}


def mended(question: str, fact: str) -> str:
    """The fact, changed to ask for what the question asks for, if the two can be exchanged word for word.

    A death becomes a birth if the question is about births alone; likewise a mother becomes a father.

    >>> mended("Which film has the director who is older, A or B?", "When did # die?")
    'When was # born?'
    """
    if _said(_LIFE, question) == {"birth"}:
        fact = _DIED.sub(r"\1 was \2 born?", fact)
    elif _said(_LIFE, question) == {"death"}:
        fact = _BORN.sub(r"\1 did \2 die?", fact)
    kin = _said(_KIN, question)
    if len(kin) == 1:
        wrong, right = _PARENTS[next(iter(kin))]
        fact = re.sub(rf"\b{wrong}\b", right, fact)
    return fact


def _said(families: Mapping[str, re.Pattern[str]], text: str) -> set[str]:
    return {name for name, words in families.items() if words.search(text)}


def strays(question: str, facts: Sequence[str]) -> str | None:
    """What the facts ask for but the question does not: a death instead of a birth, a mother instead of a father."""
    question, asked = _unnamed(question), " ".join(map(_unnamed, facts))
    if _said(_LIFE, asked) and not _said(_LIFE, question) and not _LIVES.search(question):
        return "the facts ask for a birth or a death, and the question for neither"
    for families in (_LIFE, _KIN):
        wanted, found = _said(families, question), _said(families, asked)
        if wanted and found and found - wanted:
            return f"the question asks for {_listed(wanted)}, and the facts for {_listed(found)}"
    return None


def _listed(families: set[str]) -> str:
    return " and ".join(sorted(families))
