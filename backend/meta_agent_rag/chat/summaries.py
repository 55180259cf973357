"""The summary of a whole document: one call a section, every point with the sentence that it rests on."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from ..agent.prompting import ReplyModel, Sentence, pack
from ..errors import InputError, ModelError
from ..grounding.citations import Citation, citation_of
from ..grounding.exact import Source, said_exactly
from ..grounding.quotes import is_verbatim, place
from ..llm.client import LanguageModel
from ..llm.ledger import LedgerRow
from ..llm.messages import Message
from ..prompts import attribute, prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import documents_named
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import screen
from ..text.sentences import sentences
from ..wording import counted

STAGE = "overview"
MOST_POINTS = 6
"""The number of points requested per section."""
_NO_LIMIT = 1_000_000_000

Section: TypeAlias = tuple[Found, ...]
"""Neighbouring passages that fit into one prompt."""


class Library(Protocol):
    """A source of documents and their passages: the catalogue of a corpus."""

    def documents(self) -> tuple[DocumentRecord, ...]:
        """All documents."""

    def passages_of(self, document: str) -> tuple[Passage, ...]:
        """The passages of a document, in order."""


class SaidPoint(ReplyModel):
    """One point, with the sentence that it rests on."""

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
    """A point that may be shown, with its citation written out in the text.

    If the document's sentence supports the model's wording, that is the text; else it is the sentence itself, quoted.
    """

    text: str
    citation: Citation


@dataclass(frozen=True, kw_only=True)
class SectionPoints:
    """A section's points. `invented` counts points without a true quote; `failure` says why there are none."""

    heading: str
    points: tuple[Point, ...] = ()
    invented: int = 0
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A document section by section; `left_out` counts the passages that screening omits."""

    document: DocumentRecord
    sections: tuple[SectionPoints, ...]
    left_out: int
    calls: tuple[LedgerRow, ...]


@dataclass(frozen=True, kw_only=True)
class Work:
    """A document divided for a summary: as many calls as sections, `free` if the model runs here."""

    model: LanguageModel
    document: DocumentRecord
    sections: tuple[Section, ...]
    left_out: int
    style: str

    @property
    def free(self) -> bool:
        """Whether no call costs money."""
        return self.model.serving(STAGE)[1].is_embedded

    async def done(self) -> Summary:
        """The summary. A section whose call fails reports that; the others are kept.

        Raises only errors that must stop the run: a rejected key, an exhausted budget.
        """
        session = self.model.session("overview", method="overview", deadline=None)
        task, title = prompt("overview", self.model.settings.prompts_dir), attribute(self.document.title)

        async def read(section: Section) -> SectionPoints:
            passages = pack(section, _NO_LIMIT, marked=True).text
            asked = Message(role="user", content=task.text(most=MOST_POINTS, title=title, passages=passages))
            try:
                reply = await session.ainvoke(STAGE, (asked,), PointsReply)
            except ModelError as error:
                if error.stops_run:
                    raise
                return SectionPoints(heading=_heading(section), failure=str(error))
            return kept_points(reply, section, self.style)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(read(section)) for section in self.sections]
        except ExceptionGroup as stopped:
            raise stopped.exceptions[0] from None
        return Summary(
            document=self.document,
            sections=tuple(task.result() for task in tasks),
            left_out=self.left_out,
            calls=tuple(session.rows),
        )


def prepared(model: LanguageModel, library: Library, name: str = "") -> Work:
    """The work for a document given by title or file; the name is optional if the corpus has only one.

    Raises `InputError` for a name that no document has, or if none is given although there are several.
    """
    documents = library.documents()
    if not documents:
        raise InputError("The corpus has no documents; add some with `marag ingest`.")
    if not name and len(documents) > 1:
        raise InputError(f"The corpus has {len(documents)} documents; name one (`marag documents list` lists them).")
    ids = documents_named(documents, [name]) if name else {documents[0].id}
    document = next(one for one in documents if one.id in ids)
    found = [Found(passage=passage, score=0.0) for passage in library.passages_of(document.id)]
    kept = [one for one in found if not model.settings.screening or screen((one,), drop=True, shortest=1).kept]
    return Work(
        model=model,
        document=document,
        sections=tuple(divided(kept, model.evidence_tokens())),
        left_out=len(found) - len(kept),
        style=model.settings.citation_style,
    )


def divided(passages: Iterable[Found], budget: int) -> Iterator[Section]:
    """The sections of a document, in order, each of at most `budget` tokens (estimated) or of a single passage.

    A section ends where a heading of the document begins, once it is half full.
    """
    group: list[Found] = []
    used = 0
    for found in passages:
        size = pack([found], _NO_LIMIT, marked=True).packing.tokens
        new_heading = bool(group) and found.passage.section != group[-1].passage.section
        if group and (used + size > budget or (new_heading and used > budget / 2)):
            yield tuple(group)
            group, used = [], 0
        group.append(found)
        used += size
    if group:
        yield tuple(group)


def _heading(group: Section) -> str:
    passages = [found.passage for found in group]
    named = list(dict.fromkeys(one.section for one in passages if one.section and one.section != one.title))
    return named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}" if named else ""


def kept_points(reply: PointsReply, section: Section, style: str) -> SectionPoints:
    """The points whose quotes occur in the section, one for each sentence, and the number with invented quotes."""
    points: dict[str, Point] = {}
    invented = 0
    for said in reply.points[:MOST_POINTS]:
        held = (n for n, one in enumerate(section, start=1) if is_verbatim(said.quote, [one.passage.text]))
        if (number := next(held, None)) is None:
            invented += 1
            continue
        passage = section[number - 1].passage
        sentence = _sentence(said.quote, passage.text)
        if sentence in points or sentence in (passage.title, passage.section):
            continue
        supported = said_exactly(said.point, [Source(number=number, passage=passage)], "").supported
        text = said.point if supported else f"\u201c{sentence}\u201d"
        citation = citation_of(section[number - 1], text, (sentence,))
        points[sentence] = Point(text=f"{text} {citation.written(style)}", citation=citation)
    return SectionPoints(heading=_heading(section), points=tuple(points.values()), invented=invented)


def _sentence(quote: str, text: str) -> str:
    """The whole sentence in which the quote begins, as the document has it."""
    start, _ = place(quote, text) or (len(text), 0)
    ends = accumulate(map(len, sentences(text)))
    whole = (sentence for sentence, end in zip(sentences(text), ends, strict=True) if end > start)
    return " ".join(next(whole, quote).split())


def summary_text(summary: Summary) -> str:
    """The document with its sections and points, as Markdown."""
    name, several = " ".join(summary.document.title.split()) or summary.document.source, len(summary.sections) > 1
    lines = [f"# {name}"]
    for number, section in enumerate(summary.sections, start=1):
        none = "No point of this section could be confirmed." if section.invented else "This section says nothing new."
        if section.failure:
            none = f"This section could not be summarised: {section.failure}"
        lines += ["", f"## {section.heading or f'Part {number}'}"] if several else []
        lines += ["", *([f"- {point.text}" for point in section.points] or [none])]
    if not summary.sections:
        lines.append(f"\n{name} has no text that may be shown to a model.")
    if invented := sum(section.invented for section in summary.sections):
        lines.append(f"\n{counted(invented, 'point')} left out because their quotes are not in the document.")
    if summary.left_out:
        gone = counted(summary.left_out, "passage")
        lines.append(f"\n{gone} left out because they read like orders to a language model.")
    return "\n".join(lines)
