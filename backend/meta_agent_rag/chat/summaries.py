"""Summaries of whole documents: one call a section, every point with the sentence that it rests on, as Markdown."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, islice
from typing import Annotated, Protocol, TypeAlias

from pydantic import BeforeValidator, Field

from ..agent.prompting import Packed, ReplyModel, Sentence, pack
from ..errors import InputError, ModelError
from ..grounding.citations import Citation, Style, chosen, cite
from ..grounding.exact import Source, said_exactly
from ..grounding.quotes import is_verbatim, place
from ..llm.client import LanguageModel, new_request, unannounced_tokens, utc_now
from ..llm.ledger import LedgerRow, Totals, total
from ..llm.messages import Message, Reply
from ..llm.pricing import max_cost, priced_model
from ..llm.structured import LONGEST_QUOTED_REPLY, MalformedReplyError, asked_again, json_schema
from ..prompts import attribute, estimate_tokens, prompt
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import documents_named, require_list
from ..retrieval.passage import Found, Passage
from ..retrieval.screening import screen
from ..text.sentences import sentences
from ..wording import FREE, counted

STAGE = "overview"
EVERY = "all"
"""The name for all documents of a corpus."""
MOST_POINTS = 6
"""The number of points requested per section."""
_NO_LIMIT = 1_000_000_000

OnSection: TypeAlias = Callable[[int, int], None]
"""Called with the number of completed sections and their total number."""


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
class Divided:
    """A document in sections of neighbouring passages; `left_out` counts those that screening omits."""

    document: DocumentRecord
    sections: tuple[tuple[Found, ...], ...]
    left_out: int


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
class Overview:
    """A document section by section; `left_out` as in `Divided`."""

    document: DocumentRecord
    sections: tuple[SectionPoints, ...]
    left_out: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The overviews of some documents, and what they cost."""

    overviews: tuple[Overview, ...]
    calls: tuple[LedgerRow, ...]

    @property
    def totals(self) -> Totals:
        """Calls, tokens and cost."""
        return total(self.calls)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Calls, prompt tokens (estimated, rarely too low) and the maximum cost in USD.

    The maximum assumes that every reply is requested twice, because the first is malformed, and uses its whole token
    limit. `usd` is `None` if no price is known; `free` if the model runs on this machine.
    """

    calls: int
    prompt_tokens: int
    usd: Decimal | None
    free: bool

    def __str__(self) -> str:
        """The estimate in words."""
        cost = FREE if self.free else "cost unknown" if self.usd is None else f"at most {self.usd:.4f} USD"
        return f"{counted(self.calls, 'call')}, about {self.prompt_tokens:,} prompt tokens, {cost}"


@dataclass(frozen=True, kw_only=True)
class Work:
    """Documents divided for a summary, whose cost is known before `done` is awaited."""

    model: LanguageModel
    documents: tuple[Divided, ...]
    style: Style

    @property
    def estimate(self) -> Estimate:
        """The estimated effort."""
        settings, wanted, at = self.model.settings, json_schema(PointsReply), utc_now()
        served, endpoint = self.model.serving(STAGE)
        name, prices = priced_model(settings, endpoint, at=at)
        longest = Reply(text="\U0001f600" * LONGEST_QUOTED_REPLY, usage=None)  # a character of four bytes
        fault = asked_again(longest, MalformedReplyError("x" * 500), settings.prompts_dir)
        more = 0 if endpoint.thinking else unannounced_tokens(endpoint, settings)
        prompts = [self._prompt(one, section) for one in self.documents for section in one.sections]
        requests = []
        for messages in prompts:
            requests.append(new_request(served, endpoint, settings, messages, wanted))
            requests.append(new_request(served, endpoint, settings, (*messages, *fault), wanted, more=more))
        costs = [max_cost(request, model=name, prices=prices, at=at) for request in requests]
        known = [cost for cost in costs if cost is not None]
        return Estimate(
            calls=len(prompts),
            prompt_tokens=sum(estimate_tokens(message.content) for messages in prompts for message in messages),
            usd=sum(known, Decimal(0)) if len(known) == len(costs) else None,
            free=endpoint.is_embedded,
        )

    async def done(self, on_section: OnSection | None = None) -> Summary:
        """The overviews. A section whose call fails reports that; the others are kept.

        Raises only errors that must stop the run: a rejected key, an exhausted budget.
        """
        session = self.model.session("overview", method="overview", deadline=None)
        every = [(one, section) for one in self.documents for section in one.sections]
        finished = 0

        async def read(one: Divided, section: Sequence[Found]) -> SectionPoints:
            nonlocal finished
            try:
                reply = await session.ainvoke(STAGE, self._prompt(one, section), PointsReply)
                points = kept_points(reply, section, self.style)
            except ModelError as error:
                if error.stops_run:
                    raise
                points = SectionPoints(heading=_heading(section), failure=str(error))
            finished += 1
            if on_section is not None:
                on_section(finished, len(every))
            return points

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(read(one, section)) for one, section in every]
        except ExceptionGroup as stopped:
            raise stopped.exceptions[0] from None
        results = iter([task.result() for task in tasks])
        overviews = tuple(
            Overview(
                document=one.document,
                sections=_each_once(islice(results, len(one.sections))),
                left_out=one.left_out,
            )
            for one in self.documents
        )
        return Summary(overviews=overviews, calls=tuple(session.rows))

    def _prompt(self, one: Divided, section: Sequence[Found]) -> tuple[Message, ...]:
        """The messages for a section; the part shared by all comes first, for the provider's prefix cache."""
        text = prompt("overview", self.model.settings.prompts_dir).text(
            most=MOST_POINTS, title=attribute(one.document.title), passages=_packed(section).text
        )
        return (Message(role="user", content=text),)


async def prepared(model: LanguageModel, library: Library, names: Sequence[str]) -> Work:
    """The work for documents given by title or file, or for `all`; optional if the corpus has only one.

    Raises `InputError` for a name that no document has, if no name is given although there are several, and if more
    calls are needed than OVERVIEW_CALLS allows.
    """
    settings = model.settings
    parts: list[Divided] = []
    for one in _wanted(await asyncio.to_thread(library.documents), names):
        passages = await asyncio.to_thread(library.passages_of, one.id)
        left = settings.overview_calls - sum(len(part.sections) for part in parts)
        budget = model.evidence_tokens()
        parts.append(
            await asyncio.to_thread(divided, one, passages, budget, most=left + 1, screening=settings.screening)
        )
        if len(parts[-1].sections) > left:
            raise InputError(
                f"This needs more calls than OVERVIEW_CALLS {settings.overview_calls!r} allows; choose fewer "
                "documents, or raise the limit."
            )
    return Work(model=model, documents=tuple(parts), style=chosen(settings.citation_style))


def _wanted(documents: Sequence[DocumentRecord], names: Sequence[str]) -> tuple[DocumentRecord, ...]:
    require_list(names)
    if not documents:
        raise InputError("The corpus has no documents; add some with `marag ingest`.")
    if tuple(names) == (EVERY,) or (not names and len(documents) == 1):
        return tuple(documents)
    if not names:
        raise InputError(f"The corpus has {len(documents)} documents; choose one of them, or {EVERY!r}.")
    by_id = {document.id: document for document in documents}
    found = dict.fromkeys(id_ for name in names for id_ in documents_named(documents, [name]))
    return tuple(by_id[id_] for id_ in found)


def _packed(section: Sequence[Found]) -> Packed:
    """The passages as shown in a prompt, with each sentence marked as data."""
    return pack(section, _NO_LIMIT, marked=True)


def divided(
    document: DocumentRecord,
    passages: Iterable[Passage],
    budget: int,
    *,
    most: int | None = None,
    screening: bool = True,
) -> Divided:
    """The sections of a document, in order, each of at most `budget` tokens (estimated) or of a single passage.

    A section ends where a heading of the document begins, once it is half full. The rest of a document with more than
    `most` sections is not read. `screening` leaves out passages that address a language model.
    """
    left_out = 0

    def kept() -> Iterator[Found]:
        nonlocal left_out
        for passage in passages:
            found = (Found(passage=passage, score=0.0),)
            shown = screen(found, drop=True, shortest=1).kept if screening else found
            left_out += not shown
            yield from shown

    sections = tuple(islice(_groups(kept(), budget), most))
    return Divided(document=document, sections=sections, left_out=left_out)


def _groups(passages: Iterable[Found], budget: int) -> Iterator[tuple[Found, ...]]:
    group: list[Found] = []
    used = 0
    for found in passages:
        size = _packed([found]).packing.tokens
        new_heading = bool(group) and found.passage.section != group[-1].passage.section
        if group and (used + size > budget or (new_heading and used > budget / 2)):
            yield tuple(group)
            group, used = [], 0
        group.append(found)
        used += size
    if group:
        yield tuple(group)


def _heading(group: Sequence[Found]) -> str:
    passages = [found.passage for found in group]
    named = list(dict.fromkeys(one.section for one in passages if one.section and one.section != one.title))
    pages = [page for one in passages for page in (one.start_page, one.end_page) if page is not None]
    parts = [named[0] if len(named) == 1 else f"{named[0]} to {named[-1]}"] if named else []
    if pages:
        first, last = min(pages), max(pages)
        parts.append(f"p. {first}" if first == last else f"pp. {first}-{last}")
    return ", ".join(parts)


def kept_points(reply: PointsReply, section: Sequence[Found], style: Style) -> SectionPoints:
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
        cited = cite(f"{text} [{number}]", section, (sentence,), style)
        points[sentence] = Point(text=cited.text, citation=cited.citations[0])
    return SectionPoints(heading=_heading(section), points=tuple(points.values()), invented=invented)


def _sentence(quote: str, text: str) -> str:
    """The whole sentence in which the quote begins, as the document has it."""
    start, _ = place(quote, text) or (len(text), 0)
    ends = accumulate(map(len, sentences(text)))
    whole = (sentence for sentence, end in zip(sentences(text), ends, strict=True) if end > start)
    return " ".join(next(whole, quote).split())


def _each_once(sections: Iterable[SectionPoints]) -> tuple[SectionPoints, ...]:
    """The sections; a point that two sections share counts in the first."""
    seen: set[str] = set()
    kept = []
    for section in sections:
        points = tuple(point for point in section.points if point.citation.snippet not in seen)
        seen.update(point.citation.snippet for point in points)
        kept.append(replace(section, points=points))
    return tuple(kept)


def summary_text(summary: Summary) -> str:
    """Every document with its sections and points, as Markdown."""
    return "\n\n".join("\n".join(_lines(one)) for one in summary.overviews)


def _lines(one: Overview) -> Iterator[str]:
    name = " ".join(one.document.title.split()) or one.document.source
    yield f"# {name}"
    for number, section in enumerate(one.sections, start=1):
        yield ""
        if len(one.sections) > 1:
            yield f"## {section.heading or f'Part {number} of {len(one.sections)}'}"
            yield ""
        none = "No point of this section could be confirmed." if section.invented else "This section says nothing new."
        if section.failure:
            none = f"This section could not be summarised: {section.failure}"
        yield from [f"- {point.text}" for point in section.points] or [none]
    if not one.sections:
        yield f"\n{name} has no text that may be shown to a model."
    if invented := sum(section.invented for section in one.sections):
        yield f"\n{name}: {counted(invented, 'point')} left out because their quotes are not in the document."
    if one.left_out:
        gone = counted(one.left_out, "passage")
        yield f"\n{name}: {gone} left out because they read like orders to a language model."
