"""Summarises documents with one call per section, all concurrent."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..errors import InputError, ModelError
from ..grounding.styles import Style, chosen
from ..llm.client import LanguageModel, ModelSession
from ..llm.ledger import LedgerRow, Totals, total
from ..retrieval.corpus.catalogue import DocumentRecord
from ..retrieval.corpus.naming import documents_named, require_list
from ..retrieval.passage import Passage
from .estimate import Estimate, estimate
from .points import Point, PointsReply, kept_points, points_prompt
from .sections import Divided, Section, divided

STAGE = "overview"
EVERY = "all"
"""The name for all documents of a corpus."""
_METHOD = "overview"

OnSection: TypeAlias = Callable[[int, int], None]
"""Called with the number of completed sections and their total number."""


class Library(Protocol):
    """A source of documents and their passages: the catalogue of a corpus."""

    def documents(self) -> tuple[DocumentRecord, ...]:
        """All documents."""

    def passages_of(self, document: str) -> tuple[Passage, ...]:
        """The passages of a document, in order."""


@dataclass(frozen=True, kw_only=True)
class SectionPoints:
    """A section's points. `invented` counts points without a true quote; `failure` says why there are none."""

    heading: str
    points: tuple[Point, ...]
    invented: int = 0
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A document section by section; `left_out` as in `Divided`."""

    document: DocumentRecord
    sections: tuple[SectionPoints, ...]
    left_out: int

    @property
    def points(self) -> tuple[Point, ...]:
        """All points in order."""
        return tuple(point for section in self.sections for point in section.points)


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
class Work:
    """Documents divided for an overview, whose cost is known before `done` is awaited."""

    model: LanguageModel
    documents: tuple[Divided, ...]
    style: Style

    @property
    def estimate(self) -> Estimate:
        """The estimated effort."""
        return self.estimated()

    def estimated(self, *, further: int = 0) -> Estimate:
        """The estimated effort, with `further` calls over all points."""
        settings = self.model.settings
        prompts = [points_prompt(settings, one.document, part) for one in self.documents for part in one.sections]
        return estimate(self.model, STAGE, prompts, further=further)

    async def done(self, on_section: OnSection | None = None) -> Summary:
        """The overviews. A section whose call fails reports that; the others are kept.

        Raises only errors that must stop the run: a rejected key, an exhausted budget.
        """
        session = self.model.session("overview", method=_METHOD)
        progress = _Progress(of=sum(len(one.sections) for one in self.documents), told=on_section)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    [group.create_task(_replied(session, one, section, progress)) for section in one.sections]
                    for one in self.documents
                ]
        except ExceptionGroup as stopped:
            raise stopped.exceptions[0] from None
        overviews = tuple(
            self._overview(one, [task.result() for task in own]) for one, own in zip(self.documents, tasks, strict=True)
        )
        return Summary(overviews=overviews, calls=tuple(session.rows))

    def _overview(self, one: Divided, replies: Sequence[PointsReply | str]) -> Overview:
        seen: set[str] = set()
        sections = tuple(
            self._points(section, reply, seen) for section, reply in zip(one.sections, replies, strict=True)
        )
        return Overview(document=one.document, sections=sections, left_out=one.left_out)

    def _points(self, section: Section, reply: PointsReply | str, seen: set[str]) -> SectionPoints:
        if isinstance(reply, str):
            return SectionPoints(heading=section.heading, points=(), failure=reply)
        points, invented = kept_points(reply, section, self.style, seen)
        return SectionPoints(heading=section.heading, points=points, invented=invented)


async def prepared(model: LanguageModel, library: Library, names: Sequence[str], *, further: int = 0) -> Work:
    """The work for documents given by title or file, or for `all`; optional if the corpus has only one.

    `further` is the number of calls that will follow. Raises `InputError` for a name that no document has, if no
    name is given although there are several, and if more calls are needed than OVERVIEW_CALLS allows.
    """
    documents = await asyncio.to_thread(library.documents)
    wanted = _wanted(documents, names)
    budget = model.evidence_tokens()
    parts = await asyncio.to_thread(lambda: [divided(one, library.passages_of(one.id), budget) for one in wanted])
    calls = sum(len(part.sections) for part in parts) + further
    most = model.settings.overview_calls
    work = Work(model=model, documents=tuple(parts), style=chosen(model.settings.citation_style))
    if calls > most:
        raise InputError(
            f"This needs {calls} calls, more than OVERVIEW_CALLS {most!r} allows; choose fewer documents, or raise it."
        )
    return work


def _wanted(documents: Sequence[DocumentRecord], names: Sequence[str]) -> tuple[DocumentRecord, ...]:
    require_list(names)
    if not documents:
        raise InputError("The corpus has no documents; add some with `marag ingest`.")
    if tuple(names) == (EVERY,) or (not names and len(documents) == 1):
        return tuple(documents)
    if not names:
        raise InputError(f"The corpus has {len(documents)} documents; choose one of them, or {EVERY!r}.")
    by_name = [documents_named(documents, [name]) for name in names]
    by_id = {document.id: document for document in documents}
    return tuple(by_id[id_] for id_ in dict.fromkeys(id_ for (id_,) in by_name))


@dataclass(kw_only=True)
class _Progress:
    of: int
    told: OnSection | None
    finished: int = 0

    def one_more(self) -> None:
        self.finished += 1
        if self.told is not None:
            self.told(self.finished, self.of)


async def _replied(session: ModelSession, one: Divided, section: Section, progress: _Progress) -> PointsReply | str:
    try:
        messages = points_prompt(session.owner.settings, one.document, section)
        return await session.ainvoke(STAGE, messages, PointsReply)
    except ModelError as error:
        if error.stops_run:
            raise
        return str(error)
    finally:
        progress.one_more()
