"""Summarises documents with one call per section, all concurrent."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ...errors import DeadlineError, InputError, ModelError, TooManyCallsError
from ...grounding.citation import Citation
from ...grounding.styles import Style, chosen
from ...llm.client import LanguageModel, ModelSession
from ...llm.ledger import LedgerRow, Totals, total
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.corpus.naming import documents_named, require_list
from ...retrieval.passage import Passage
from .estimate import Estimate, estimate
from .points import Point, PointsReply, kept_points, points_prompt
from .sections import Divided, Section, divided

STAGE = "overview"
EVERY = "all"
"""The name for all documents of a corpus."""
_METHOD = "overview"

_Kept: TypeAlias = tuple[dict[str, Point], int]
_Failure: TypeAlias = ModelError | DeadlineError
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
    """A section's points. `invented` counts points without a true quote; `failure` says why there are none.

    `late` means that the deadline passed before the reply.
    """

    heading: str
    points: tuple[Point, ...]
    invented: int = 0
    failure: str = ""
    late: bool = False


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
    def citations(self) -> tuple[Citation, ...]:
        """The places that the points rest on, each once, in order."""
        return tuple(dict.fromkeys(point.citation for one in self.overviews for point in one.points))

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
        settings = self.model.settings
        prompts = [points_prompt(settings, one.document, part) for one in self.documents for part in one.sections]
        return estimate(self.model, STAGE, prompts, PointsReply)

    async def done(
        self, on_section: OnSection | None = None, *, question_id: str = "overview", deadline: float | None = None
    ) -> Summary:
        """The overviews. A section whose call fails, or exceeds `deadline`, reports that; the others are kept.

        `deadline` is a `time.monotonic` timestamp. Raises only errors that must stop the run: a rejected key, an
        exhausted budget.
        """
        session = self.model.session(question_id, method=_METHOD, deadline=deadline)
        progress = _Progress(of=sum(len(one.sections) for one in self.documents), on_section=on_section)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    [group.create_task(self._kept(session, one, section, progress)) for section in one.sections]
                    for one in self.documents
                ]
        except ExceptionGroup as stopped:
            raise stopped.exceptions[0] from None
        overviews = tuple(
            _overview(one, [task.result() for task in own]) for one, own in zip(self.documents, tasks, strict=True)
        )
        return Summary(overviews=overviews, calls=tuple(session.rows))

    async def _kept(
        self, session: ModelSession, one: Divided, section: Section, progress: "_Progress"
    ) -> _Kept | _Failure:
        """The points of a section, checked while the other calls are in progress."""
        try:
            messages = points_prompt(self.model.settings, one.document, section)
            reply = await session.ainvoke(STAGE, messages, PointsReply)
        except (ModelError, DeadlineError) as error:
            if error.stops_run:
                raise
            return error
        else:
            return kept_points(reply, section, self.style)
        finally:
            progress.one_more()


async def prepared(
    model: LanguageModel, library: Library, names: Sequence[str], *, further: int = 0, sections: int | None = None
) -> Work:
    """The work for documents given by title or file, or for `all`; optional if the corpus has only one.

    `further` is the number of calls that will follow. Raises `InputError` for a name that no document has and if no
    name is given although there are several, and `TooManyCallsError` if more calls are needed than OVERVIEW_CALLS
    allows, or more than `sections`, without reading on.
    """
    documents = await asyncio.to_thread(library.documents)
    wanted = _wanted(documents, names)
    budget = model.evidence_tokens()
    parts = await asyncio.to_thread(lambda: tuple(_parts(library, wanted, budget, sections)))
    calls = sum(len(part.sections) for part in parts) + further
    most = model.settings.overview_calls
    work = Work(model=model, documents=parts, style=chosen(model.settings.citation_style))
    if calls > most:
        raise TooManyCallsError(
            f"This needs {calls} calls, more than OVERVIEW_CALLS {most!r} allows; choose fewer documents, or raise it."
        )
    return work


def _parts(library: Library, documents: Sequence[DocumentRecord], budget: int, most: int | None) -> Iterator[Divided]:
    """The documents in sections. Raises `TooManyCallsError` at the first section beyond `most`."""
    count = 0
    for one in documents:
        part = divided(one, library.passages_of(one.id), budget, most=None if most is None else most - count + 1)
        count += len(part.sections)
        if most is not None and count > most:
            raise TooManyCallsError(f"This needs more than {most} calls; choose fewer documents.")
        yield part


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
    on_section: OnSection | None
    finished: int = 0

    def one_more(self) -> None:
        self.finished += 1
        if self.on_section is not None:
            self.on_section(self.finished, self.of)


def _overview(one: Divided, results: Sequence[_Kept | _Failure]) -> Overview:
    """The sections with their points; a sentence that two sections share counts in the first."""
    seen: set[str] = set()
    sections = []
    for section, result in zip(one.sections, results, strict=True):
        if isinstance(result, tuple):
            points = tuple(point for sentence, point in result[0].items() if sentence not in seen)
            seen.update(result[0])
            sections.append(SectionPoints(heading=section.heading, points=points, invented=result[1]))
        else:
            late = isinstance(result, DeadlineError)
            sections.append(SectionPoints(heading=section.heading, points=(), failure=str(result), late=late))
    return Overview(document=one.document, sections=tuple(sections), left_out=one.left_out)
