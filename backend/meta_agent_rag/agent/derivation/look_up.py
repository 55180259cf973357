"""Looks up one fact: a very short call over the evidence that all stages share, and a check in code.

The check says where in the evidence the value occurs, or why it is not accepted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import ModelError
from ...grounding.abstention import is_abstention
from ...grounding.answer_kind import kind_asked, of_kind
from ...grounding.short_answer import without_disambiguation
from ...llm.messages import Reply
from ...prompts import phrase
from ...text.dates import Date, as_date, date_texts, dates_in, is_date
from ...text.names import content_words, spaced, unqualified
from ...text.normalise import normalised
from ...text.sentences import sentences
from ..context import Context
from ..prompting import Packed, task
from ..signals import mean_logprob, with_logprobs
from .derivation import Fact
from .values import as_quantity, country_names, is_closed, numbers_in, verdict

_PLACE = re.compile(r"^\s*where\b|\b(?:what|which)\s+(?:city|town|country|state|place|county|province|village)\b", re.I)
_NATIONALITY = re.compile(r"\bnationality\b|\b(?:what|which)\s+country\b", re.IGNORECASE)
_PERSON = re.compile(r"^\s*(?:who|whom|whose)\b", re.IGNORECASE)


async def look_up(
    context: Context, asked: str, entity: str, packed: Packed, *, chain: int, index: int, of: str, round_: int
) -> Fact:
    """The fact with its value, or open with the reason. Raises only errors that must stop the run."""
    entity = entity or entity_of(asked, of)
    blank = Fact(chain=chain, index=index, asked=asked, entity=entity, value="")
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
    declined = is_abstention(re.split(r"[;:(,.]", line, maxsplit=1)[0])
    if kind_asked(asked) == "date" and not declined and len(dates := date_texts(line)) == 1:
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
    return "name" if _PERSON.search(asked) else "anything"


_NAME = r"[^\W\d_a-z\u00df-\u00ff][\w'\u2019&.-]*|\d[\w'\u2019&.-]*"
_NAMED = re.compile(rf"(?:{_NAME})(?:\s+(?:(?:of|the|and|de|la|le|von|van|in|for|to|a|an|del|al|y)\s+)*(?:{_NAME}))*")
_QUESTION_WORDS = re.compile(
    r"^(?:(?:who|whom|whose|what|which|where|when|how|why|in|on|at|is|are|was|were|do|does|did|has|have|the|many|much)\s+)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Text:
    """A passage as shown in a prompt: its id, and its text with the title on the first line."""

    id: str
    text: str

    @property
    def title(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True, kw_only=True)
class Occurrence:
    """Where a value occurs; otherwise `fault` says why it is unreliable."""

    passage_id: str | None = None
    sentence: str = ""
    fault: str | None = None


def entity_of(fact: str, of: str) -> str:
    """The name that a fact is about: the candidate if the fact has it, else its longest name; empty if it has none.

    >>> entity_of("Who directed the film Salt Road?", "")
    'Salt Road'
    """
    if of and f" {normalised(of)} " in f" {normalised(fact)} ":
        return of
    return max(names_in(fact), key=len, default="")


def names_in(fact: str) -> tuple[str, ...]:
    """The names in a fact: runs of words with capitals or digits, function words between them included."""
    named = [_without_genitive(name) for name in _NAMED.findall(_QUESTION_WORDS.sub("", fact))]
    return tuple(name for name in named if any(character.isupper() for character in name))


def _without_genitive(name: str) -> str:
    return re.sub(r"['\u2019]s$", "", name.strip(" .,?!'\"\u201c\u201d"))


def supported(fact: str, entity: str, value: str, texts: Sequence[Text]) -> Occurrence:
    """Where the value occurs in a passage that also mentions the entity, if it answers what the fact asks.

    A passage whose title names the entity is preferred; if one exists, a value from another passage must occur
    in a sentence that names the entity. A yes or no cannot be located: a passage that mentions the entity is enough.
    """
    if fault := _no_answer(fact, value):
        return Occurrence(fault=fault)
    about = [text for text in texts if mentions(text.text, entity)]
    if is_closed(fact):
        return Occurrence(passage_id=about[0].id) if about else Occurrence(fault=f"no passage mentions {entity!r}")
    places = list(_places(value, texts))
    titled = bool(entity) and any(names(text.title, entity) for text in texts)
    by_title = [place for place in places if entity and names(place[0].title, entity) and place[0] in about]
    near = [place for place in places if mentions(place[1], entity) or (not titled and place[0] in about)]
    if best := [*by_title, *near]:
        return Occurrence(passage_id=best[0][0].id, sentence=best[0][1])
    if not places:
        return Occurrence(fault=f"{value!r} occurs in no passage")
    return Occurrence(fault=f"no passage that gives {value!r} mentions {entity!r}")


def _no_answer(fact: str, value: str) -> str | None:
    if is_abstention(value):
        return "no passage gives it"
    if of_kind(fact, value) is False or (is_closed(fact) and verdict(value) is None):
        return f"{value!r} is not the kind of answer that it asks for"
    if not is_closed(fact) and f" {normalised(value)} " in f" {normalised(fact)} ":
        return f"{value!r} is what the fact is about, not an answer to it"
    return None


def mentions(text: str, entity: str) -> bool:
    """Whether a text contains the content words of an entity. Brackets in it are optional; an empty entity matches."""
    held = spaced(text)
    return not entity or all(f" {word} " in held for word in content_words(unqualified(entity)))


def names(title: str, entity: str) -> bool:
    """Whether a title is the name of the entity, or a shorter or longer form of it."""
    one, other = set(content_words(unqualified(title))), set(content_words(unqualified(entity)))
    return bool(one and other) and (one <= other or other <= one)


def _places(value: str, texts: Sequence[Text]) -> Iterator[tuple[Text, str]]:
    """The passages that contain a value, with the sentence: matched as words, as a date, or as a number."""
    short, nations, named = normalised(value), country_names(value), bool(names_in(value))
    date = as_date(value) if is_date(value) or not named else None
    number = None if named or date else as_quantity(value)
    for text in texts:
        holding = [
            sentence.strip()
            for sentence in sentences(text.text.partition("\n")[2])
            if any(f" {name} " in f" {normalised(sentence)} " for name in (short, *nations))
        ]
        if holding:
            yield from ((text, sentence) for sentence in holding)
        elif f" {short} " in f" {normalised(text.title)} ":
            yield text, ""
        elif (found := _as_value(text, date, number.number if number else None)) is not None:
            yield text, found


def _as_value(text: Text, date: Date | None, number: float | None) -> str | None:
    for sentence in sentences(text.text.partition("\n")[2]):
        if date is not None and date in dates_in(sentence):
            return sentence.strip()
        if number is not None and number in numbers_in(sentence):
            return sentence.strip()
    return None
