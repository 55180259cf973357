"""What one visitor of the tab Loop is running: a walk, or two side by side, over one question."""

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
"""A node's end and the next one's beginning are shown as one."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is asked, over what, and under which configurations; two of them are compared.

    `chosen` is the question that was picked from a list; its paragraphs are the evidence unless `corpus` is named.
    """

    text: str
    chosen: Question | None
    corpus: str | None
    what_ifs: tuple[WhatIf, ...]

    @property
    def golds(self) -> tuple[str, ...]:
        """The gold answers, as long as the question is the one that they belong to."""
        known = self.chosen is not None and self.chosen.text.strip() == self.text.strip()
        return self.chosen.golds if self.chosen is not None and known else ()


@dataclass(kw_only=True)
class LoopVisit:
    """One visitor's walks; `sights` are what there is to see of them, `fault` what kept them from beginning."""

    workbench: Workbench
    visitor: str
    setup: Setup | None = None
    walks: tuple[Walk, ...] = ()
    fault: str = ""
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def sights(self) -> tuple[Sight, ...]:
        """What there is to see, a walk each; none before they have begun."""
        return tuple(walk.sight for walk in self.walks)

    @property
    def under_way(self) -> bool:
        """Is anything being opened, looked up or written?"""
        return self._task is not None and not self._task.done()

    async def go(self, setup: Setup, *, steps: bool) -> AsyncIterator[None]:
        """Walk on to the end, or through one node each; comes back whenever there is more to see.

        Another setup, and a walk that has ended, begin again. Nothing happens while the visit is in progress.
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
            await _ended(task)  # the visitor has gone, or has seen the end

    async def stop(self) -> None:
        """Cancel what is in progress, the model's call included."""
        if self._task is not None:
            await _ended(self._task)

    async def reset(self) -> None:
        """Stop, and forget the walks."""
        await self.stop()
        self.setup, self.walks, self.fault = None, (), ""

    async def _go(self, setup: Setup, news: "asyncio.Queue[bool]", *, steps: bool) -> None:
        try:
            if not self.walks:
                self.walks = tuple([await self._begin(setup, what_if) for what_if in setup.what_ifs])
            await asyncio.gather(*(walk.advance(lambda _: news.put_nowait(True), steps=steps) for walk in self.walks))
        except MetaRagError as fault:
            self.fault = str(fault)
        except Exception as fault:  # noqa: BLE001  # a visitor is told that it failed, and the log says how
            _LOG.exception("The demo could not begin with %r.", setup.text)
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
"""Questions of a set that are listed; a link leads to any other."""


def choices(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """What can be picked, as (label, id): a question of one's own, then those of a set."""
    listed = {question.id: question.text for question in one.questions[:_LISTED]}
    if also is not None:
        listed.setdefault(also.id, also.text)
    return [("Write my own …", OWN), *((label, id_) for id_, label in listed.items())]


def setup(workbench: Workbench, chosen: str, text: str, evidence: str, what_ifs: Sequence[WhatIf]) -> Setup:
    """What is asked; the paragraphs of the chosen question unless a corpus was named."""
    return Setup(
        text=text,
        chosen=workbench.question(chosen),
        corpus=None if evidence == PARAGRAPHS else evidence,
        what_ifs=tuple(what_ifs),
    )
