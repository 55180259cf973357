"""Decomposes a question by what it describes without naming it: a model copies the description, code makes the plan.

A small planner answers a nested question with the question itself. It can point to a part of it.
"""

import re
from typing import Annotated

from pydantic import Field

from ...errors import ModelError
from ...llm.client import ModelSession
from ...settings import Settings
from ...text.names import content_words
from ..prompting import ReplyModel, few_shot
from .derivation import Chain, Plan
from .look_up import names_in
from .unfolding import PERSON, asks_for_name

_MOST_HOPS = 4
_AROUND = " \t\r\n?.\"'\u201c\u201d\u2018\u2019"
_EXAMPLES = (
    ("When was the company that built the Larkspur ferry founded?", "the company that built the Larkspur ferry"),
    (
        "What is the population of the town where the author of Winter Tides was born?",
        "the author of Winter Tides",
    ),
    (
        "What is the highest point of the region where Port Ellery is located?",
        "the region where Port Ellery is located",
    ),
    (
        "Who was the first president of the league that the Corvane Rovers play in?",
        "the league that the Corvane Rovers play in",
    ),
    ("When did the state whose capital is Marston join the federation?", "the state whose capital is Marston"),
    ("Which river flows through the birthplace of the composer of Night Ferry?", "the composer of Night Ferry"),
)
_ASKING = re.compile(r"\b(?:who|whom|whose|which|what|where|when|how|why)\b", re.IGNORECASE)
_LINKED = re.compile(r"\b(?:of|who|whom|whose|that|which|where|by|in|from)\b|['\u2019]s\b", re.IGNORECASE)
_PERSON = re.compile(
    rf"(?:the|an?)\s+(?:(?:\w+\s+)??(?:{PERSON})\b(?!['\u2019-])|(?:[\w-]+\s+){{1,3}}?who\b)", re.IGNORECASE
)


class DescriptionReply(ReplyModel):
    """The words of a question that describe something."""

    described: Annotated[str, Field(json_schema_extra={"maxLength": 200})]


async def described(model: ModelSession, settings: Settings, question: str, *, round_: int) -> Plan | None:
    """The chain that leads from the innermost description to what is asked; `None` without a usable description.

    Raises only errors that must stop the run.
    """
    facts = [question.strip()]
    if not _ASKING.search(question) or not names_in(question):
        return None
    while len(facts) < _MOST_HOPS:
        found = _found(await _part(model, settings, facts[0], round_=round_), facts[0])
        if found is None or (len(facts) > 1 and not _LINKED.search(found.group())):
            break
        inner = f"{'Who' if _PERSON.match(found.group()) else 'What'} is {found.group()}?"
        facts[0:1] = [inner, f"{facts[0][: found.start()]}#{facts[0][found.end() :]}"]
        if " the " not in found.group():
            break  # nothing is described within it
    return Plan(operator="last", chains=(Chain(of="", facts=tuple(facts)),)) if len(facts) > 1 else None


async def _part(model: ModelSession, settings: Settings, question: str, *, round_: int) -> str:
    examples = [(example, {"described": part}) for example, part in _EXAMPLES]
    asked = few_shot(settings, "describe", examples, question)
    try:
        reply = await model.ainvoke("plan", asked, DescriptionReply, round_=round_)
    except ModelError as error:
        if error.stops_run:
            raise
        return ""
    return reply.described


def _found(part: str, question: str) -> re.Match[str] | None:
    """A part of a question in its own words, if it says more of something than its name and leaves something to ask."""
    copied = r"\s+".join(re.sub(r"['\u2019]", "['\u2019]", re.escape(word)) for word in part.strip(_AROUND).split())
    found = re.search(rf"(?<!\w)(?:(?:the|an?)\s+)?{copied}(?!\w)", question, re.IGNORECASE) if copied else None
    if found is None or not set(names_in(found.group())) <= set(names_in(question)):
        return None
    left = f"{question[: found.start()]}#{question[found.end() :]}"
    if not _ASKING.search(left) or asks_for_name(left):
        return None
    words = set(content_words(part))
    named = {word for name in names_in(part) for word in content_words(name)}
    return found if named and words - named and set(content_words(question)) - words else None
