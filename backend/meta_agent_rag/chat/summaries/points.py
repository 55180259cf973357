"""The points of a section, requested in one call and kept only with the sentence that supports each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field

from ...agent.prompting import ReplyModel, Sentence
from ...grounding.citation import Citation
from ...grounding.citations import cite
from ...grounding.claims import Claim
from ...grounding.quotes import is_verbatim, place
from ...grounding.styles import Style
from ...grounding.support.rules import supports
from ...llm.messages import Message
from ...prompts import prompt
from ...prompts.fencing import attribute
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.passage import Found
from ...settings import Settings
from ...text.sentences import sentences
from .sections import Section

MOST_POINTS = 6
"""The number of points requested per section."""


class SaidPoint(ReplyModel):
    """One point, with the sentence that it rests on; the passage's number is a hint that is not relied on."""

    quote: Sentence
    point: Sentence


def _whole_ones(value: object) -> object:
    """The complete entries: one that is cut off in a truncated reply is dropped on its own."""
    if not isinstance(value, list):
        return value
    return [one for one in value if isinstance(one, dict) and all(one.get(key) for key in ("quote", "point"))]


class PointsReply(ReplyModel):
    """Stage `overview`."""

    points: Annotated[
        Annotated[list[SaidPoint], BeforeValidator(_whole_ones)], Field(json_schema_extra={"maxItems": MOST_POINTS})
    ]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point that may be shown; `text` has its citation written out.

    If the rules confirm the model's wording, that is the text; else it is the document's own sentence, quoted.
    """

    text: str
    bare: str
    quoted: bool
    citation: Citation


def points_prompt(settings: Settings, document: DocumentRecord, section: Section) -> tuple[Message, ...]:
    """The messages for a section; the part shared by all comes first, for the provider's prefix cache."""
    text = prompt("overview", settings.prompts_dir).text(
        most=MOST_POINTS, title=attribute(document.title), passages=section.packed.text
    )
    return (Message(role="user", content=text),)


def kept_points(reply: PointsReply, section: Section, style: Style) -> tuple[dict[str, Point], int]:
    """The points whose quotes occur in the section, and the number with invented quotes.

    Each sentence yields one point; the key is the sentence.
    """
    points: dict[str, Point] = {}
    invented = 0
    for said in reply.points[:MOST_POINTS]:
        number = _number(said.quote, section.passages)
        if number is None:
            invented += 1
            continue
        sentence = _sentence(said.quote, section.passages[number - 1])
        if sentence not in points and not _is_heading(sentence, section.passages[number - 1]):
            points[sentence] = _point(said.point, sentence, number, section.passages, style)
    return points, invented


def _number(quote: str, passages: Sequence[Found]) -> int | None:
    places = (number for number, one in enumerate(passages, start=1) if is_verbatim(quote, [one.passage.text]))
    return next(places, None)


def _is_heading(sentence: str, found: Found) -> bool:
    """Is it a title above the passage, without content of its own?"""
    return sentence in (found.passage.title, found.passage.section)


def _sentence(quote: str, found: Found) -> str:
    """The whole sentence in which the quote begins, as the document has it."""
    text = found.passage.text
    standing = place(quote, text)
    if standing is None:
        return quote
    position = 0
    for sentence in sentences(text):
        position += len(sentence)
        if position > standing[0]:
            return " ".join(sentence.split())
    return quote


def _point(text: str, sentence: str, number: int, passages: Sequence[Found], style: Style) -> Point:
    claim = Claim(text=text, marks=(number,), span=(0, len(text)))
    (support,) = supports([claim], passages, quotes=(sentence,))
    bare = text if support.supported else f"\u201c{sentence}\u201d"
    cited = cite(f"{bare} [{number}]", passages, (sentence,), style)
    return Point(text=cited.text, bare=bare, quoted=not support.supported, citation=cited.citations[0])
