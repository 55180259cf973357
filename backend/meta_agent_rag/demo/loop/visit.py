"""One visitor's run in the tab Loop: a walk, or two side by side, over one question."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from ...agent.context import Task
from ...datasets import Question
from ...errors import InputError, MetaRagError
from ...retrieval.passage import passages_of
from ..questions import QuestionSet
from ..workbench import Workbench
from .walk import Sight, Walk, unexpected
from .what_if import WhatIf

_BURST_SECONDS = 0.02
"""Events within this time are shown together: a node's end and the next one's start."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The question, its evidence, and the configurations; two of them are compared.

    `chosen` is the question selected from a list; its paragraphs are the evidence unless `corpus` is named.
    """

    text: str
    chosen: Question | None
    corpus: str | None
    what_ifs: tuple[WhatIf, ...]

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers, if the text is still that of the chosen question."""
        known = self.chosen is not None and self.chosen.text.strip() == self.text.strip()
        return self.chosen.golds if self.chosen is not None and known else ()


@dataclass(kw_only=True)
class LoopVisit:
    """One visitor's walks; `sights` is their current display, `fault` the reason why they could not start."""

    workbench: Workbench
    visitor: str
    setup: Setup | None = None
    walks: tuple[Walk, ...] = ()
    fault: str = ""
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def sights(self) -> tuple[Sight, ...]:
        """The current display, one per walk; empty before they have started."""
        return tuple(walk.sight for walk in self.walks)

    @property
    def under_way(self) -> bool:
        """Is anything being opened, searched or written?"""
        return self._task is not None and not self._task.done()

    async def go(self, setup: Setup, *, steps: bool) -> AsyncIterator[None]:
        """Walk to the end, or through one node each; yields whenever there is more to show.

        A different setup, or a finished walk, starts over. Has no effect while the visit is in progress.
        """
        if self.under_way:
            return
        if setup != self.setup or all(sight.status == "done" for sight in self.sights):
            self.setup, self.walks = setup, ()
        self.fault = ""
        news: asyncio.Queue[bool] = asyncio.Queue()
        task = self._task = asyncio.create_task(self._go(setup, news, steps=steps))
        task.add_done_callback(lambda _: news.put_nowait(False))
        try:
            yield
            while await news.get():
                await asyncio.sleep(_BURST_SECONDS)
                over = not all(news.get_nowait() for _ in range(news.qsize()))
                yield
                if over:
                    break
        finally:
            await _ended(task)  # the visitor has left, or has seen the end

    async def stop(self) -> None:
        """Cancel the work in progress, including the model's call."""
        if self._task is not None:
            await _ended(self._task)

    async def reset(self) -> None:
        """Stop and discard the walks."""
        await self.stop()
        self.setup, self.walks, self.fault = None, (), ""

    async def _go(self, setup: Setup, news: "asyncio.Queue[bool]", *, steps: bool) -> None:
        try:
            if not self.walks:
                self.walks = tuple([await self._begin(setup, what_if) for what_if in setup.what_ifs])
            await asyncio.gather(*(walk.advance(lambda _: news.put_nowait(True), steps=steps) for walk in self.walks))
        except MetaRagError as fault:
            self.fault = str(fault)
        except Exception as fault:  # noqa: BLE001  # the visitor is informed, and the log has the details
            _LOG.exception("The demo could not start with %r.", setup.text)
            self.fault = unexpected(fault)

    async def _begin(self, setup: Setup, what_if: WhatIf) -> Walk:
        engine = what_if.engine(await self.workbench.engine(self.visitor, provider=what_if.provider))
        question_id = setup.chosen.id if setup.chosen is not None else ""
        if setup.corpus is not None:
            retriever = what_if.retriever(await self.workbench.retriever(setup.corpus))
            return Walk.begin(engine, Task(question=setup.text, retriever=retriever, id=question_id))
        if setup.chosen is None:
            raise InputError("Your own question has no paragraphs; search a corpus instead.")
        evidence = passages_of(setup.chosen.paragraphs)
        return Walk.begin(engine, Task(question=setup.text, evidence=evidence, id=question_id))


async def _ended(task: "asyncio.Task[None]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait([task])


OWN = "own"
PARAGRAPHS = "paragraphs"
_LISTED = 300
"""The number of listed questions per set; a link can lead to any other."""


def choices(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """The selectable questions, as (label, id): one's own question, then those of a set."""
    listed = {question.id: question.text for question in one.questions[:_LISTED]}
    if also is not None:
        listed.setdefault(also.id, also.text)
    return [("Write my own …", OWN), *((label, id_) for id_, label in listed.items())]


def setup(workbench: Workbench, chosen: str, text: str, evidence: str, what_ifs: Sequence[WhatIf]) -> Setup:
    """The setup; the evidence is the paragraphs of the chosen question unless a corpus is named."""
    return Setup(
        text=text,
        chosen=workbench.question(chosen),
        corpus=None if evidence == PARAGRAPHS else evidence,
        what_ifs=tuple(what_ifs),
    )
