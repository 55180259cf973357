"""Looks up one fact: a very short call over the evidence that all stages share, and a check in code."""

import re
from collections.abc import Iterable
from dataclasses import replace

from ...errors import ModelError
from ...grounding.abstention import is_abstention
from ...grounding.answer_kind import kind_asked
from ...grounding.short_answer import without_disambiguation
from ...llm.messages import Reply
from ...prompts import phrase
from ...text.dates import date_texts
from ..context import Context
from ..monitoring.signals import mean_logprob, with_logprobs
from ..prompting.messages import task
from ..prompting.packing import Packed
from .derivation import Fact
from .support import Text, entity_of, supported
from .verdicts import is_closed

_PLACE = re.compile(r"^\s*where\b|\b(?:what|which)\s+(?:city|town|country|state|place|county|province|village)\b", re.I)
_NATIONALITY = re.compile(r"\bnationality\b|\b(?:what|which)\s+country\b", re.IGNORECASE)
_NAME = re.compile(r"^\s*(?:who|whom|whose)\b", re.IGNORECASE)


async def look_up(
    context: Context, asked: str, entity: str, packed: Packed, *, chain: int, index: int, of: str, round_: int
) -> Fact:
    """The fact with its value, or open with the reason. Raises only errors that must stop the run."""
    entity = entity or entity_of(asked, of)
    blank = Fact(chain=chain, index=index, asked=asked, entity=entity, value="")
    known = context.oracles.fact(asked, entity) if context.oracles.fact is not None else None
    if known is not None:
        return replace(grounded(blank, known, packed, logprob=None), value=known, open=None)
    prompt = task(replace(context, asked=""), "look_up", asked, packed, kind=phrase(f"wanted_{kind_wanted(asked)}"))
    try:
        reply = await context.model.areply("look_up", prompt, round_=round_, sampling=with_logprobs(context, "look_up"))
    except ModelError as error:
        if error.stops_run:
            raise
        return replace(blank, open=str(error))
    return grounded(blank, value_of(reply, asked, packed.titles), packed, logprob=mean_logprob(reply))


def grounded(fact: Fact, value: str, packed: Packed, *, logprob: float | None) -> Fact:
    """The fact with a value and its place in the evidence, or open with the reason."""
    passages = zip(packed.packing.packed_ids, packed.texts, strict=True)
    texts = [Text(id=identity, text=text) for identity, text in passages]
    found = supported(fact.asked, fact.entity, value, texts)
    return replace(
        fact,
        value="" if is_abstention(value) else value,
        passage_id=found.passage_id,
        sentence=found.sentence,
        logprob=logprob,
        open=found.fault,
    )


def value_of(reply: Reply, asked: str, titles: Iterable[str]) -> str:
    """The bare value of a reply: its first line, or only the date if that line is a sentence that gives one."""
    line = reply.text.strip().partition("\n")[0].strip().strip('"').rstrip(".").strip()
    if kind_asked(asked) == "date" and len(dates := date_texts(line)) == 1:
        return dates[0]
    return without_disambiguation(line, titles)


def kind_wanted(asked: str) -> str:
    """The kind of value that a fact's wording asks for, as the key of a phrase."""
    if is_closed(asked):
        return "verdict"
    if (kind := kind_asked(asked)) is not None:
        return kind
    if _NATIONALITY.search(asked):
        return "nationality"
    if _PLACE.search(asked):
        return "place"
    return "name" if _NAME.search(asked) else "anything"
