"""Resolves what a question describes without naming, one step at a time, with the evidence in view.

A step names what the question describes (`clue`, `name`) and asks the question that is then left (`ask`). It is checked
in code, and each becomes a fact of the derivation. With PLANS=resolution, this comes before the plan that a model makes
from the question alone, and takes the place of one that was rejected.
"""

import re
from typing import Annotated

from pydantic import Field

from ...errors import ModelError
from ...grounding.answer_kind import kind_asked
from ...prompts import prompt
from ...text.normalise import jaccard, normalised
from ..context import Context
from ..prompting import Packed, ReplyModel, task
from .derivation import Chain, Derivation, Fact, Plan
from .look_up import Text, look_up, mentions, names_in
from .unfolding import unfolded

RESOLVED = "the facts are resolved over the passages"
"""Why no plan was made before the passages were read."""
_MOST_HOPS = 4
_RESTATED = 0.8
_DESCRIBING = re.compile(r"\s(?:who|whom|whose|which|that|where|in which|what)\b", re.IGNORECASE)


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


def is_open(question: str) -> bool:
    """Whether a question offers no choice and asks for no yes or no, so that something may be left to resolve."""
    return kind_asked(question) not in ("verdict", "choice")


async def resolve(context: Context, question: str, packed: Packed, *, round_: int) -> Derivation:
    """The derivation of a question by steps over the evidence. Raises only errors that must stop the run.

    The question that is left after the last step is looked up like any fact. A name that no passage has leaves an open
    fact: what was described is to be searched.
    """
    facts: list[Fact] = []
    left = question
    while len(facts) < _MOST_HOPS - 1 and (not facts or describes(left)):
        reply = await _asked(context, left, packed, round_=round_)
        if reply is None:
            break
        fact = _checked(reply, left, len(facts), packed)
        if fact is None:
            break
        facts.append(fact)
        if fact.open is not None:
            return _derivation(facts)
        left = reply.ask.strip()
    if not facts:
        return Derivation(plan=None, dropped="no step of the question could be resolved")
    entity = facts[-1].value
    facts.append(await look_up(context, left, entity, packed, chain=0, index=len(facts), of="", round_=round_))
    return _derivation(facts)


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


def _checked(reply: ResolutionReply, question: str, index: int, packed: Packed) -> Fact | None:
    """The step as a fact, open if no passage has the name; `None` if it is no step forward.

    The name must not be in the question, but in the question that is left, which must not be the same question again;
    and nothing may come from the prompt's examples.
    """
    name, ask = reply.name.strip(), reply.ask.strip()
    said, left = f" {normalised(question)} ", f" {normalised(ask)} "
    short = f" {normalised(name)} "
    if not short.strip() or short in said or short not in left or jaccard(ask, question) >= _RESTATED:
        return None
    if any(f" {normalised(one)} " in f"{short}{left}" and f" {normalised(one)} " not in said for one in _examples()):
        return None
    fact = Fact(chain=0, index=index, asked=reply.clue.strip() or question, entity="", value=name)
    texts = [
        Text(id=identity, text=text) for identity, text in zip(packed.packing.packed_ids, packed.texts, strict=True)
    ]
    found = next((text for text in texts if mentions(text.text, name) and short in f" {normalised(text.text)} "), None)
    if found is None:
        return Fact(chain=0, index=index, asked=fact.asked, entity="", value="", open=f"no passage names {name!r}")
    return Fact(chain=0, index=index, asked=fact.asked, entity="", value=name, passage_id=found.id)


def _examples() -> frozenset[str]:
    """The names in the prompt's examples."""
    return frozenset(name for line in prompt("resolve").sections["examples"].splitlines() for name in _names(line))


def _names(line: str) -> list[str]:
    return [name for part in re.findall(r'"([^"]*)"', line) for name in names_in(part) if " " in name]
