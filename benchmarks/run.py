"""Runs methods over questions: at once as many as asked, each result on disk as soon as it is there."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from meta_agent_rag.agent.engine import Engine, open_engine
from meta_agent_rag.errors import CostLimitError, MetaRagError
from meta_agent_rag.llm.ledger import total
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import EMBEDDED
from meta_agent_rag.retrieval.hybrid import Retriever

from .config import RunConfig
from .datasets import LoadedQuestions, Question
from .evidence import open_domain, supplied
from .methods import Method, Task, named
from .run_folder import RunFolder
from .samples import failed_row, sample_row
from .searching import SuppliedSearch

_AT_ONCE = 8
_AT_ONCE_EMBEDDED = 2


class Display(Protocol):
    """Shows a run as it goes."""

    def corpus(self, done: int, total: int) -> None:
        """Passages indexed so far."""

    def start(self, total: int, done: Sequence[dict[str, Any]]) -> None:
        """`total` answers are wanted; `done` are there from an earlier part of the run."""

    def row(self, row: dict[str, Any]) -> None:
        """One more answer, or failure."""

    def stop(self) -> None:
        """The run is over, or interrupted."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run came to: all rows so far, and the error that stopped it early, if one did."""

    rows: tuple[dict[str, Any], ...]
    stopped_by: MetaRagError | None = None
    deficits: tuple[str, ...] = ()


@dataclass(kw_only=True)
class _Run:
    config: RunConfig
    folder: RunFolder
    display: Display
    engine: Engine
    retriever: Retriever | None
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    async def answer(self, question: Question, method: Method) -> None:
        """Answer one question by one method, and write its row; raises only what stops the run."""
        evidence = supplied(question, self.config.mode)
        task = Task(
            id=question.id,
            question=question.text,
            name=method.name,
            search=self.retriever or SuppliedSearch(passages=evidence or (), encoder=self.engine.monitor_encoder),
            evidence=evidence,
            retriever=self.retriever,
        )
        started = time.perf_counter()
        try:
            answer = await method.answer(self.engine, task)
            if answer.stop_reason == CostLimitError.stop_reason:
                # with more money it would have gone on: no finished question, to be asked again
                raise CostLimitError("The cost limit is reached; raise it to go on.")
        except MetaRagError as error:
            if error.stops_run:
                raise
            calls = [row for row in self.engine.model.ledger.rows if row.question_id == question.id]
            spent = total(row for row in calls if row.method == method.name)
            row = failed_row(question, method.name, error, spent, latency_s=time.perf_counter() - started)
        else:
            row = sample_row(question, method.name, answer, latency_s=time.perf_counter() - started)
        self.rows[question.id, method.name] = row
        self.folder.add(row)
        self.display.row(row)


async def execute(
    config: RunConfig,
    loaded: LoadedQuestions,
    questions: Sequence[Question],
    folder: RunFolder,
    display: Display,
) -> Outcome:
    """Answer what is not answered yet; finished questions of a resumed run are not asked again."""
    methods = named(",".join(config.methods))
    before = folder.rows()
    wanted = [(question, method) for question in questions for method in methods]
    finished = {key for key, row in before.items() if row["error"] is None}
    open_ = [(question, method) for question, method in wanted if (question.id, method.name) not in finished]
    async with AsyncExitStack() as stack:
        stack.enter_context(folder.locked())
        stack.callback(folder.close)
        model = await stack.enter_async_context(
            open_language_model(config.settings, ledger_path=folder.calls, paid_usd=folder.paid_usd())
        )
        engine = await stack.enter_async_context(
            open_engine(config.settings, model=model, without_deficits=config.without_deficits)
        )
        retriever = await stack.enter_async_context(open_domain(config, loaded, display.corpus))
        run = _Run(config=config, folder=folder, display=display, engine=engine, retriever=retriever, rows=before)
        display.start(len(wanted), [before[key] for key in before if key in finished])
        stack.callback(display.stop)
        stopped_by = await _all(run, open_, _at_once(config, engine))
        kept = tuple(run.rows[key] for key in ((q.id, m.name) for q, m in wanted) if key in run.rows)
        return Outcome(rows=kept, stopped_by=stopped_by, deficits=engine.deficits.names)


def _at_once(config: RunConfig, engine: Engine) -> int:
    if config.concurrency is not None:
        return config.concurrency
    return _AT_ONCE_EMBEDDED if engine.model.choice.provider.name == EMBEDDED else _AT_ONCE


async def _all(run: _Run, tasks: Sequence[tuple[Question, Method]], at_once: int) -> MetaRagError | None:
    """Work through the tasks; an error that stops the run ends what is under way, and is returned."""
    waiting = iter(tasks)

    async def work() -> None:
        for question, method in waiting:
            await run.answer(question, method)

    stopped_by: MetaRagError | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(tasks))):
                group.create_task(work())
    except* MetaRagError as errors:
        stopped_by = _first(errors)
    return stopped_by


def _first(errors: BaseExceptionGroup[MetaRagError]) -> MetaRagError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
