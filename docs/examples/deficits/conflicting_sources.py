"""Two passages give different values for one fact: prefer the better supported or the later one, and say so.

Dates and quantities are compared, since code can tell that two of them differ. A sentence of another passage
contradicts a fact if it names what the fact is about and then gives another value of the same kind, beside a word that
the fact's question or sentence has too ("was completed in 1931", "was completed only in 1934").
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from meta_agent_rag import Deficit, Diagnosis, Findings, Passage, Repair, as_date, as_quantity
from meta_agent_rag.agent.derivation import Fact
from meta_agent_rag.agent.derivation.look_up import Text, entity_of, supported
from meta_agent_rag.agent.derivation.values import same_value
from meta_agent_rag.agent.state import State
from meta_agent_rag.text.dates import date_texts
from meta_agent_rag.text.names import content_words, unqualified
from meta_agent_rag.text.normalise import normalised
from meta_agent_rag.text.sentences import sentences

_BESIDE = 5
"""Words on either side of a value that say what it is a value of."""
_STEM = 4
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_NAME = re.compile(r"\b[A-Z]")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A fact, the passage that gives it, and one that gives another value."""

    fact: Fact
    passage: Passage
    other: Passage
    value: str


def conflicts(findings: Findings) -> Iterator[Conflict]:
    """Every contradiction of a settled fact, in the order of facts and passages."""
    passages = {found.passage.id: found.passage for found in findings.passages}
    for fact in _facts(findings):
        own = passages.get(fact.passage_id or "")
        if own is None or fact.open is not None or not _is_about(own, fact):
            continue
        for other in passages.values():
            if other is not own and (value := _contradiction(fact, own, other)) is not None:
                yield Conflict(fact=fact, passage=own, other=other, value=value)


def _facts(findings: Findings) -> tuple[Fact, ...]:
    """The facts of the derivation; of a question that is a single fact, the draft's answer."""
    if findings.derivation.plan is not None:
        return findings.facts
    question, value = findings.question, findings.draft.short_answer
    entity = entity_of(question, "")
    texts = [Text(id=found.passage.id, text=found.passage.searchable()) for found in findings.passages]
    place = supported(question, entity, value, texts)
    return (
        Fact(
            chain=0,
            index=0,
            asked=question,
            entity=entity,
            value=value,
            passage_id=place.passage_id,
            sentence=place.sentence,
            open=place.fault,
        ),
    )


def _is_about(passage: Passage, fact: Fact) -> bool:
    """Whether the fact's question names the passage's title."""
    return f" {normalised(unqualified(passage.title))} " in f" {normalised(fact.asked)} "


def _contradiction(fact: Fact, own: Passage, other: Passage) -> str | None:
    """Another value of the fact that a sentence of a passage gives, if none of its sentences gives the same one."""
    entity, mine = unqualified(own.title), _values(fact.value, fact)
    if (
        not mine
        or _NAME.search(fact.value.replace(mine[0], ""))
        or set(content_words(other.title)) > set(content_words(entity))
    ):
        return None  # no date or quantity, or the passage is about a namesake
    if any(same_value(mine[0], value) for value in _values(other.text, fact)):
        return None
    words = (_stems(fact.asked) | _beside(fact.sentence, mine[0], after=0)) - _stems(entity)
    unit = fact.value.partition(mine[0])[2]
    for sentence in sentences(other.text):
        said = sentence.partition(entity)[2]  # of a sentence about the entity, what is said about it
        for value in _values(said, fact):
            after = 0 if as_date(value) is not None else _BESIDE  # "opened in 1934", "1,934 seats"
            alike = f"{value}{unit}" in said and _differ(mine[0], value)
            if alike and words & _beside(said, value, after=after):
                return f"{value}{unit}"
    return None


def _values(text: str, fact: Fact) -> list[str]:
    """The dates of a text if the fact's value is one, else its other numbers."""
    dates = date_texts(text)
    if as_date(fact.value) is not None:
        return [date for date in dates if as_date(date) is not None]
    for date in dates:
        text = text.replace(date, " ")
    return _NUMBER.findall(text)


def _differ(one: str, other: str) -> bool:
    """Whether two values are of one kind and differ: two dates, or two numbers."""
    if (as_date(one) is None) != (as_date(other) is None) or same_value(one, other) is not False:
        return False
    left, right = as_quantity(one), as_quantity(other)
    return as_date(one) is not None or (left is not None and right is not None and left.number != right.number)


def _beside(sentence: str, value: str, *, after: int) -> set[str]:
    """The stems of the words before a value, and of some after it."""
    left, found, right = sentence.partition(value)
    return _stems(" ".join([*left.split()[-_BESIDE:], *right.split()[:after]])) if found else set()


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in content_words(text) if not word.isdigit()}


def _preferred(conflict: Conflict, findings: Findings) -> tuple[str, str]:
    """The value to believe, and why: what more passages give, else what the passage of the later date gives."""
    texts = [f" {normalised(found.passage.text)} " for found in findings.passages]
    own, other = (
        sum(f" {normalised(value)} " in text for text in texts) for value in (conflict.fact.value, conflict.value)
    )
    if own != other:
        return (conflict.fact.value if own > other else conflict.value), "is given by more passages"
    if _dated(conflict.other, conflict.value) > _dated(conflict.passage, conflict.fact.value):
        return conflict.value, "comes from the later source"
    return conflict.fact.value, "comes from the passage that was found first, and neither is the later"


def _dated(passage: Passage, value: str) -> int:
    """The latest year that a passage names besides a value; 0 if none."""
    return max((int(year) for year in _YEAR.findall(f"{passage.title} {passage.text}") if year not in value), default=0)


def detect(findings: Findings) -> Diagnosis | None:
    """Passages disagree about a fact that the answer rests on."""
    conflict = next(conflicts(findings), None)
    if conflict is None:
        return None
    fact = conflict.fact
    why = f"{fact.asked!r} is {fact.value!r} in {conflict.passage.title!r} and {conflict.value!r} in "
    return Diagnosis(rationale=f"{why}{conflict.other.title!r}", about=fact.asked, insists=True)


def repair(state: State, findings: Findings) -> Repair:
    """Adopt the preferred value, or derive the answer again without the other passage; say so in either case."""
    conflict = next((one for one in conflicts(findings) if one.fact.asked == findings.about), None)
    if conflict is None:  # the critic's diagnosis: write again under the directive
        return Repair()
    value, why = _preferred(conflict, findings)
    because = (
        f"The sources differ: {conflict.fact.value} ({conflict.passage.title}) and {conflict.value} "
        f"({conflict.other.title}); {value} {why}."
    )
    if value == conflict.fact.value:
        return Repair(adopt=findings.derivation.answer or findings.draft.short_answer, because=because)
    if findings.derivation.plan is None or conflict.fact == findings.last_fact:
        return Repair(adopt=value, because=because, obsolete=findings.voted)
    return Repair(drop=(conflict.passage.id,), ask=conflict.fact.asked, because=because, obsolete=findings.voted)


DEFICIT = Deficit(
    name="conflicting_sources",
    when="two passages give different values for one fact that the answer rests on",
    directive="State both values with their passages, and prefer the one that more passages give, else the later one.",
    answer_mode="evidence",
    retrieves=False,
    examples=("one passage says that the bridge was opened in 1931, and a later survey says 1934",),
    priority=5,
    speaks="before",
    detect=detect,
    repair=repair,
)
