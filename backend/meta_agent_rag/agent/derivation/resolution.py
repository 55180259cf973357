"""Resolves what a question describes without naming, one step at a time, with the evidence in view.

A step names what the question describes (`clue`, `name`) and asks the question that is then left (`ask`). It is checked
in code, and each becomes a fact of the derivation. With PLANS=resolution, this takes the place of a missing plan.
"""

import re
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from ...errors import ModelError
from ...prompts import prompt
from ...text.normalise import jaccard, normalised
from ..context import Context
from ..prompting import Packed, ReplyModel, task
from .derivation import Chain, Derivation, Fact, Plan
from .look_up import look_up, names_in
from .reading import Reading, read_on
from .unfolding import is_open, unfolded

_MOST_HOPS = 4
_RESTATED = 0.8
_DESCRIBING = re.compile(r"\s(?:who|whom|whose|which|that|where|in which|what)\b", re.IGNORECASE)
_ASKING = re.compile(r"\b(?:who|whom|whose|which|what|where|when|how)\b", re.IGNORECASE)
_FILLERS = r"(?:is|are|was|were|the|an?|name|of)"
_LEADING_FILLERS = re.compile(rf"^(?:{_FILLERS}\s+)+", re.IGNORECASE)


class ResolutionReply(ReplyModel):
    """A step: the words that describe something, its name, and the question that is left."""

    clue: Annotated[str, Field(json_schema_extra={"maxLength": 160})]
    name: Annotated[str, Field(json_schema_extra={"maxLength": 100})]
    ask: Annotated[str, Field(json_schema_extra={"maxLength": 200})]


def describes(question: str) -> bool:
    """Whether a question describes something instead of naming it, and offers no choice.

    >>> describes("What is the population of the town where Ada Holm was born?"), describes("Where was Ada Holm born?")
    (True, False)
    """
    return is_open(question) and (bool(_DESCRIBING.search(question)) or unfolded(question) is not None)


@dataclass(frozen=True, kw_only=True)
class ResolutionStep:
    """A step that passed the checks: what the question describes as a fact, and the question that is left."""

    fact: Fact
    left: str


async def resolve(context: Context, question: str, reading: Reading, *, round_: int) -> tuple[Derivation, Reading]:
    """The derivation of a question by steps over the evidence, and the evidence that it ends with.

    Raises only errors that must stop the run. After each name, passages about it are searched for.
    The question that is left after the last step is looked up like any fact. A name that no passage has leaves an open
    fact: what was described is to be searched.
    """
    facts: list[Fact] = []
    left = question
    while len(facts) < _MOST_HOPS - 1 and (not facts or describes(left)):
        reply = await _asked(context, left, reading.packed, round_=round_)
        step = _step(reply, left, len(facts), reading.packed) if reply is not None else None
        if step is None:
            break
        facts.append(replace(step.fact, searched=reading.was_searched(step.fact.passage_id)))
        left = step.left
        if step.fact.open is not None:
            return _derivation(facts), reading
        reading = await read_on(context, reading, step.fact.value, [step.fact.value, left])
    if not facts:
        return Derivation(plan=None, dropped="no step of the question could be resolved"), reading
    entity = facts[-1].value
    last = await look_up(context, left, entity, reading.packed, chain=0, index=len(facts), of="", round_=round_)
    last = replace(last, searched=reading.was_searched(last.passage_id))
    if last.open is None and _has(question, last.value):
        last = replace(last, open=f"{last.value!r} is in the question, not an answer to it")
    return _derivation([*facts, last]), reading


def _derivation(facts: list[Fact]) -> Derivation:
    """The facts as a chain that ends at the answer, if its last one has a value."""
    plan = Plan(operator="last", chains=(Chain(of="", facts=tuple(fact.asked for fact in facts)),))
    answer = "" if facts[-1].open is not None else facts[-1].value
    return Derivation(
        plan=plan,
        facts=tuple(facts),
        answer=answer,
        because=" → ".join(fact.value for fact in facts) if answer else "",
        resolved=True,
    )


async def _asked(context: Context, question: str, packed: Packed, *, round_: int) -> ResolutionReply | None:
    try:
        return await context.model.ainvoke(
            "plan", task(context, "resolve", question, packed), ResolutionReply, round_=round_
        )
    except ModelError as error:
        if error.stops_run:
            raise
        return None


def _step(reply: ResolutionReply, question: str, index: int, packed: Packed) -> ResolutionStep | None:
    """The step that a reply makes, open if no passage has the name; `None` if it leads nowhere.

    The name must not be in the question, and nothing may come from the prompt's examples. A clue that is what the
    question asks for describes nothing on the way to it. A question left that lacks the name gets it for the clue.
    """
    clue, name, ask = (" ".join(part.split()) for part in (reply.clue, reply.name, reply.ask))
    copied = any(_has(f"{name} | {ask}", one) and not _has(question, one) for one in _examples())
    if not normalised(name) or _has(question, name) or copied or _is_asked(question, clue):
        return None
    asks_on = _has(ask, name) and jaccard(ask, question) < _RESTATED
    left = ask if asks_on else _put(name, clue, ask) or _put(name, clue, question)
    if not left:
        return None
    fact = Fact(chain=0, index=index, asked=clue or question, entity="", value=name)
    passages = zip(packed.packing.packed_ids, packed.texts, strict=True)
    found = next((identity for identity, text in passages if _has(text, name)), None)
    if found is None:
        return ResolutionStep(fact=replace(fact, value="", open=f"no passage names {name!r}"), left=left)
    return ResolutionStep(fact=replace(fact, passage_id=found), left=left)


def _has(text: str, part: str) -> bool:
    return bool(normalised(part)) and f" {normalised(part)} " in f" {normalised(text)} "


def _is_asked(question: str, clue: str) -> bool:
    """Whether a clue is what the question asks for, as in `Which <clue> ...?` and `Who is the <clue>?`."""
    bare = re.escape(_LEADING_FILLERS.sub("", clue).rstrip("?").strip())
    if not bare:
        return False
    asks = rf"\b(?:what|which)\s+{bare}\b|\b(?:what|which|who|whom)\s+(?:{_FILLERS}\s+)+{bare}\W*$"
    return re.search(asks, question, re.IGNORECASE) is not None


def _put(name: str, clue: str, text: str) -> str:
    """The question with the name in place of the clue; empty if it lacks the clue, or is then no question."""
    left, replaced = re.subn(re.escape(clue.rstrip("?").strip()), lambda _: name, text, count=1, flags=re.IGNORECASE)
    asks = clue and replaced and _ASKING.search(left) and len(left.split()) > len(name.split()) + 2
    return left if asks else ""


def _examples() -> frozenset[str]:
    """The names in the prompt's examples."""
    return frozenset(name for line in prompt("resolve").sections["examples"].splitlines() for name in _names(line))


def _names(line: str) -> list[str]:
    return [name for part in re.findall(r'"([^"]*)"', line) for name in names_in(part) if " " in name]
