"""Run methods on questions in parallel; each result is written to disk as soon as it exists."""

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from meta_agent_rag.agent.engine import Answer, Engine, open_engine
from meta_agent_rag.datasets import LoadedQuestions, Question
from meta_agent_rag.discovery import calling, require_result
from meta_agent_rag.errors import AuthenticationError, BalanceError, CostLimitError, ExtensionError, MetaRagError
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.ledger import LedgerRow, total
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.providers import EMBEDDED, choose_provider
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.retrieval.hybrid import Retriever
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.wording import counted

from ..judge import Judge
from ..methods import MethodTask
from ..metrics import scorer_named
from ..rows.samples import failed_row, sample_row
from .arms import Arm, arm_settings, reference
from .config import RunConfig, RunOptions
from .display import Display
from .evidence import open_domain, oracles_for, supplied, tuned
from .folder import RunFolder

_LOG = logging.getLogger("meta_agent_rag.benchmarks")
_AT_ONCE = 8
_AT_ONCE_EMBEDDED = 2
_MOMENT_S = 1.0
_ANY_TEXT = "Is everything there?"


class TooManyFailuresError(MetaRagError):
    """More of a row's answers failed than the run allows."""

    exit_code = 1
    stops_run = True


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: all rows so far, and the error that stopped it early, if any."""

    rows: tuple[Mapping[str, Any], ...]
    stopped_by: MetaRagError | None = None


@dataclass(kw_only=True)
class _Run:
    config: RunConfig
    options: RunOptions
    folder: RunFolder
    display: Display
    engines: Mapping[Arm, Engine]
    retriever: Retriever | None
    judge: Judge | None
    most_failures: float
    had_answer: frozenset[tuple[str, str]]
    """What --retry-failed asks again although it has an answer, which no failure may replace."""
    failures: Counter[str] = field(default_factory=Counter)
    calls: dict[tuple[str, str], list[LedgerRow]] = field(default_factory=dict)
    spent: dict[tuple[str, str], int] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def note(self, row: Mapping[str, Any]) -> None:
        """Keep the tokens that a complete row spent, if another row of the table may spend as many."""
        if self.config.equals:
            self.spent[row["id"], row["method"]] = row["tokens"]["prompt"] + row["tokens"]["completion"]

    def hear(self, call: LedgerRow) -> None:
        """Keep a call while its question is in progress: for its waiting time, and for the row of a failed question."""
        if (key := (call.question_id, call.method)) in self.calls:
            self.calls[key].append(call)

    async def answer(self, question: Question, arm: Arm) -> None:
        """Answer one question with one row's method, and write the result; raises only what stops the run."""
        row = await self._row(question, arm)
        stopped_by: MetaRagError | None = None
        if self.judge is not None and row["error"] is None:
            row["judge"] = None
            try:
                row["judge"] = await self.judge.verdict(question, row["prediction"])
            except MetaRagError as error:  # the answer is paid; --rescore --judge adds the verdict
                stopped_by = error
        if row["error"] is None or (question.id, arm.name) not in self.had_answer:
            if self.options.recorder is not None:  # first: a row may be recorded twice, but not be missing
                self.options.recorder.answered(row)
            self.folder.add(row)
        self.note(row)
        self.display.row(row)
        if stopped_by is not None:
            raise stopped_by
        model = self.engines[arm].model
        if model.cache is not None and model.unusable is not None:  # a resumed run will not need malformed replies
            model.cache.drop(*model.unusable.pop((question.id, arm.name), ()))
        if row["error"] is not None:
            self.failures[arm.name] += 1
            if self.failures[arm.name] > self.most_failures:
                raise TooManyFailuresError(
                    f"{counted(self.failures[arm.name], 'answer')} of {arm.name!r} failed, more than --fail-on-error "
                    f"{self.options.fail_on_error:g} allows; the last with {row['error']}"
                )

    async def _row(self, question: Question, arm: Arm) -> dict[str, Any]:
        calls = self.calls[question.id, arm.name] = []
        started = time.perf_counter()
        try:
            task = await self._task(question, arm)
            started = time.perf_counter()  # indexing is not this row's time
            with calling("method", arm.method.name, arm.method.answer):
                answer = await arm.method.answer(self.engines[arm], task)
                require_result(answer, Answer)
            if answer.stop_reason == CostLimitError.stop_reason:  # with a higher limit it would have continued
                raise CostLimitError("The cost limit leaves no room for the next call; raise it to continue.")
        except MetaRagError as error:
            if error.stops_run:
                raise
            if isinstance(error, ExtensionError) and str(error) not in self.reported:
                self.reported.add(str(error))
                _LOG.error("%s", error, exc_info=error.__cause__)
            return failed_row(question, arm.name, error, total(calls), **_times(started, calls))
        finally:
            del self.calls[question.id, arm.name]
        return sample_row(
            question,
            arm.name,
            answer,
            quotes=arm.method.quotes,
            scorer=scorer_named(self.config.scorer),
            **_times(started, calls),
        )

    async def _task(self, question: Question, arm: Arm) -> MethodTask:
        """The task, with its evidence indexed, and its budget if it may spend as much as another row of the table."""
        engine = self.engines[arm]
        evidence = supplied(question, "supporting" if "retrieval" in arm.oracles else self.config.mode)
        search: Retriever
        if searched := evidence is None and self.retriever is not None:
            search = tuned(self.retriever, engine.settings)
        else:
            search = SuppliedRetriever(passages=tuple(evidence or ()), encoder=engine.monitor_encoder)
            await search.index()
        if evidence is not None and engine.narrows(evidence):
            searched, evidence = True, None
        loop = reference(arm, self.config.arms) if arm.equal else None
        return MethodTask(
            id=question.id,
            question=question.text,
            method=arm.name,
            search=search,
            evidence=evidence,
            retriever=search if searched else None,
            oracles=oracles_for(arm.oracles, engine, question, name=arm.name),
            budget=None if loop is None else self.spent[question.id, loop.name],
        )


def _times(started: float, calls: Sequence[LedgerRow]) -> dict[str, float]:
    seconds = time.perf_counter() - started
    return {"latency_s": seconds, "waited_s": min(waited_s(calls), seconds)}  # the clock of calls may jump


def waited_s(calls: Sequence[LedgerRow]) -> float:
    """Seconds in which an answer waited: a call queued or failed and was tried again, and no other was being served."""
    tries: dict[str, list[LedgerRow]] = {}
    for call in calls:
        if not call.cached:
            tries.setdefault(call.request, []).append(call)
    waits: list[tuple[float, float]] = []
    serves: list[tuple[float, float]] = []
    for made in tries.values():
        first, last = made[0].at.timestamp(), made[-1].at.timestamp()
        waits.append((first - made[0].queued_s, last))
        (serves if made[-1].error is None else waits).append((last, last + made[-1].latency_s))
    edges = sorted({edge for span in (*waits, *serves) for edge in span})

    def inside(spans: Sequence[tuple[float, float]], start: float, end: float) -> bool:
        return any(first <= start and end <= last for first, last in spans)

    return sum(
        end - start for start, end in pairwise(edges) if inside(waits, start, end) and not inside(serves, start, end)
    )


async def execute(
    config: RunConfig,
    options: RunOptions,
    loaded: LoadedQuestions,
    *,
    questions: Sequence[Question],
    folder: RunFolder,
    display: Display,
) -> RunOutcome:
    """Answer the questions that are still open; finished questions of a resumed run are not run again."""
    async with AsyncExitStack() as stack:
        stack.callback(folder.close)
        before = folder.rows()
        wanted = [(question, arm) for question in questions for arm in config.arms]
        finished = {key: row for key, row in before.items() if not (options.retry_failed and _failed(row))}
        open_ = [(question, arm) for question, arm in wanted if (question.id, arm.name) not in finished]
        opened = open_language_model(
            config.settings,
            ledger_path=folder.calls,
            paid_usd=folder.paid_usd(),
            reservations=folder.reservations,
        )
        model = replace(await stack.enter_async_context(opened), tape=options.recorder, unusable={})
        engines = await _engines(config, model, stack, warm=bool(open_))
        retriever = await stack.enter_async_context(open_domain(config, loaded, display.corpus))
        if open_:  # load what the first question would wait for, so that its latency is like the others'
            if retriever is not None:
                await retriever.encoder.queries([_ANY_TEXT])
            await model.warm()
        run = _Run(
            config=config,
            options=options,
            folder=folder,
            display=display,
            engines=engines,
            retriever=retriever,
            judge=Judge(model=replace(model, unusable=None)) if config.judge else None,
            most_failures=options.fail_on_error * len(questions),
            had_answer=frozenset(key for key, row in before.items() if key not in finished and row["error"] is None),
            failures=Counter(row["method"] for row in finished.values() if row["error"] is not None),
        )
        model.ledger.listeners.append(run.hear)
        for row in finished.values():
            run.note(row)
        display.start(len(wanted), finished.values())
        del before, finished  # rows are on disk, so a run can have any number of them
        stack.callback(display.stop)
        gc.collect()
        gc.freeze()  # what exists before the run is never collected: a twentieth of a call's CPU time
        stack.callback(gc.unfreeze)
        at_once = config.concurrency or (_AT_ONCE_EMBEDDED if model.choice.provider.name == EMBEDDED else _AT_ONCE)
        stopped_by = await _all(run, [task for task in open_ if not task[1].equal], at_once)
        if stopped_by is None:  # rows of equal cost follow, since the spending that they match is known then
            stopped_by = await _all(run, [task for task in open_ if task[1].equal], at_once)
        folder.close()
        folder.compact()
        rows = folder.rows()
        kept = tuple(rows[key] for key in ((q.id, arm.name) for q, arm in wanted) if key in rows)
        return RunOutcome(rows=kept, stopped_by=stopped_by)


def _failed(row: Mapping[str, Any]) -> bool:
    """Whether the answer would be different if nothing had failed."""
    return row["error"] is not None or row.get("stop_reason") == "search_failed" or bool(row.get("lost_calls"))


async def _engines(config: RunConfig, model: LanguageModel, stack: AsyncExitStack, *, warm: bool) -> dict[Arm, Engine]:
    """An engine for each row, all over one ledger, budget, cache and encoder of a kind, with its own settings."""
    engines: dict[Arm, Engine] = {}
    encoders: dict[str, AsyncEncoder] = {}
    for arm in config.arms:
        settings = arm_settings(arm, config.settings)
        name = settings.monitor_encoder
        if name not in encoders:
            choice = load_encoder(config.settings, name)
            if choice.note:
                _LOG.warning("The monitor's encoder: %s", choice.note)
            if warm:
                await asyncio.to_thread(choice.encoder.encode_queries, [_ANY_TEXT])  # loads it
            encoders[name] = AsyncEncoder(choice.encoder)
        own = replace(model, settings=settings, choice=choose_provider(settings))
        engine = open_engine(settings, model=own, monitor_encoder=encoders[name], without_deficits=arm.without_deficits)
        engines[arm] = await stack.enter_async_context(engine)
    return engines


async def _all(run: _Run, tasks: Sequence[tuple[Question, Arm]], at_once: int) -> MetaRagError | None:
    """Work through the tasks; an error that stops the run is returned once work in progress has ended.

    A call in progress is paid for, and cancelling it would lose its reply. If the key or the account is refused, it
    gets only a moment.
    """
    waiting = iter(tasks)
    stopped_by: list[MetaRagError] = []
    workers: list[asyncio.Task[None]] = []

    async def work() -> None:
        for question, arm in waiting:
            try:
                await run.answer(question, arm)
            except MetaRagError as error:
                stopped_by.append(error)
                if isinstance(error, AuthenticationError | BalanceError):
                    asyncio.get_running_loop().call_later(_MOMENT_S, give_up)
            if stopped_by:
                return

    def give_up() -> None:
        for worker in workers:
            worker.cancel()

    async with asyncio.TaskGroup() as group:
        workers += [group.create_task(work()) for _ in range(min(at_once, len(tasks)))]
    return stopped_by[0] if stopped_by else None
