"""Run methods on questions in parallel; each result is written to disk as soon as it exists."""

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from meta_agent_rag import telemetry
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
from meta_agent_rag.retrieval.hybrid import HybridRetriever, Retriever
from meta_agent_rag.retrieval.supplied import SuppliedRetriever

from ..judge import Judge
from ..methods import MethodTask
from ..recording import TapedEncoder, TapedRetriever
from ..recording.offline import NoModel, NoSearch
from ..rows.allowance import Spending
from ..rows.samples import failed_row, sample_row
from .arms import Arm, arm_settings, reference
from .config import Conduct, RunConfig
from .evidence import open_domain, supplied, tuned
from .folder import RunFolder
from .oracles import oracles_for
from .serving import Recorded

_LOG = logging.getLogger("meta_agent_rag.benchmarks")
_AT_ONCE = 8
_MOMENT_S = 1.0
_ANY_TEXT = "Is everything there?"
_AT_ONCE_EMBEDDED = 2


class Display(Protocol):
    """Shows the progress of a run."""

    def corpus(self, done: int, total: int) -> None:
        """Passages indexed so far."""

    def start(self, total: int, done: Iterable[Mapping[str, Any]]) -> None:
        """`total` answers are expected; `done` exist from an earlier part of the run."""

    def row(self, row: Mapping[str, Any]) -> None:
        """One more answer, or failure."""

    def stop(self) -> None:
        """The run is over, or interrupted."""


class FailedAnswerError(MetaRagError):
    """An answer failed, and the run was set to stop at the first failure."""

    exit_code = 1
    stops_run = True


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """The outcome of a run: all rows so far, and the error that stopped it early, if any."""

    rows: tuple[Mapping[str, Any], ...]
    stopped_by: MetaRagError | None = None
    deficits: tuple[str, ...] = ()


@dataclass(kw_only=True)
class _Run:
    config: RunConfig
    conduct: Conduct
    folder: RunFolder
    display: Display
    engines: Mapping[Arm, Engine]
    retriever: Retriever | None
    judge: Judge | None
    calls: dict[tuple[str, str], list[LedgerRow]] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    reported: set[str] = field(default_factory=set)

    def hear(self, call: LedgerRow) -> None:
        """Keep a call while its question is in progress, for the row of a question that fails."""
        if (key := (call.question_id, call.method)) in self.calls:
            self.calls[key].append(call)

    async def answer(self, question: Question, arm: Arm) -> None:
        """Answer one question with one row's method, and write the result; raises only what stops the run."""
        with telemetry.span(f"question {arm.name}", {telemetry.WORKFLOW: arm.name, telemetry.QUESTION_ID: question.id}):
            await self._answer(question, arm)

    async def _answer(self, question: Question, arm: Arm) -> None:
        started = time.perf_counter()
        calls = self.calls[question.id, arm.name] = []
        try:
            task = await self._allowed(question, arm)
            started = time.perf_counter()  # waiting for another row's spending is not part of this row's latency
            answer = await self._answered(arm, task)
        except MetaRagError as error:
            if error.stops_run:
                self.spending.end(question.id, arm.name, error)
                raise
            if isinstance(error, ExtensionError) and str(error) not in self.reported:
                self.reported.add(str(error))
                _LOG.error("%s", error, exc_info=error.__cause__)
            row = failed_row(question, arm.name, error, total(calls), latency_s=self._seconds(question, arm, started))
        else:
            row = await self._scored(question, arm, answer, latency_s=self._seconds(question, arm, started))
        finally:
            del self.calls[question.id, arm.name]
        self._keep(row)
        self._forget_unusable(question, arm)
        if self.conduct.fail_on_error and row["error"] is not None:
            raise FailedAnswerError(f"{arm.name!r} failed on question {question.id!r}: {row['error']}")

    async def _allowed(self, question: Question, arm: Arm) -> MethodTask:
        """The task, with its allowance if it may spend as much as another row of the table."""
        task = self._task(question, arm, self.engines[arm])
        if (loop := reference(arm, self.config.arms) if arm.equal else None) is None:
            return task
        return replace(task, allowance=await self.spending.allowance(question.id, loop.name, arm.equal))

    async def _answered(self, arm: Arm, task: MethodTask) -> Answer:
        with calling("method", arm.method.name, arm.method.answer):
            answer = await arm.method.answer(self.engines[arm], task)
            require_result(answer, Answer)
        if answer.stop_reason == CostLimitError.stop_reason:
            # with a higher limit it would have continued: the question is not finished and will be retried
            raise CostLimitError("The cost limit leaves no room for the next call; raise it to continue.")
        return answer

    def _task(self, question: Question, arm: Arm, engine: Engine) -> MethodTask:
        evidence = supplied(question, "supporting" if "retrieval" in arm.oracles else self.config.mode)
        retriever = None
        if evidence is None and self.retriever is not None:
            retriever = self._taped(tuned(self.retriever, engine.settings), question, arm)
        search = retriever
        if search is None:
            own = SuppliedRetriever(passages=evidence or (), encoder=engine.monitor_encoder)
            search = self._taped(own, question, arm)
        if evidence is not None and engine.narrows(evidence):
            retriever, evidence = search, None
        return MethodTask(
            id=question.id,
            question=question.text,
            method=arm.name,
            search=search,
            evidence=evidence,
            retriever=retriever,
            oracles=oracles_for(arm.oracles, engine, question, name=arm.name),
        )

    def _taped(self, retriever: Retriever, question: Question, arm: Arm) -> Retriever:
        tape = self.conduct.player or self.conduct.recorder
        if tape is None:
            return retriever
        return TapedRetriever(inner=retriever, tape=tape, question_id=question.id, method=arm.name)

    async def _scored(self, question: Question, arm: Arm, answer: Answer, *, latency_s: float) -> dict[str, Any]:
        row = sample_row(question, arm.name, answer, latency_s=latency_s, quotes=arm.method.quotes)
        return row if self.judge is None else {**row, "judge": await self.judge.verdict(question, answer.short_answer)}

    def _seconds(self, question: Question, arm: Arm, started: float) -> float:
        if self.conduct.player is not None:
            return self.conduct.player.seconds(question.id, arm.name)
        return round(time.perf_counter() - started, 4)

    def _forget_unusable(self, question: Question, arm: Arm) -> None:
        """Drop malformed replies from the cache, now that a resumed run will not need them any more."""
        model = self.engines[arm].model
        if model.cache is not None and model.unusable is not None:
            model.cache.drop(*model.unusable.pop((question.id, arm.name), ()))

    def _keep(self, row: dict[str, Any]) -> None:
        self.folder.add(row)
        self.spending.note(row)
        if self.conduct.recorder is not None:
            self.conduct.recorder.answered(row)
        self.display.row(row)


async def execute(
    config: RunConfig,
    conduct: Conduct,
    loaded: LoadedQuestions,
    *,
    questions: Sequence[Question],
    folder: RunFolder,
    display: Display,
) -> RunOutcome:
    """Answer the questions that are still open; finished questions of a resumed run are not run again."""
    async with AsyncExitStack() as stack:
        stack.enter_context(folder.locked())
        stack.callback(folder.close)
        before = folder.rows()
        wanted = [(question, arm) for question in questions for arm in config.arms]
        finished = {key: row for key, row in before.items() if not (conduct.retry_failed and _failed(row))}
        open_ = [(question, arm) for question, arm in wanted if (question.id, arm.name) not in finished]
        open_.sort(key=lambda task: bool(task[1].equal))  # after the rows whose spending they match
        model = await stack.enter_async_context(_model(config, conduct, folder))
        engines = await _engines(config, conduct, model, stack, warm=bool(open_))
        retriever = await stack.enter_async_context(_retriever(config, conduct, loaded, display))
        if open_ and conduct.player is None:
            await _warmed(model, retriever)
        run = _Run(
            config=config,
            conduct=conduct,
            folder=folder,
            display=display,
            engines=engines,
            retriever=retriever,
            judge=Judge(model=replace(model, unusable=None)) if config.judge else None,
        )
        model.ledger.listeners.append(run.hear)
        for row in finished.values() if config.equals else ():
            run.spending.note(row)
        display.start(len(wanted), finished.values())
        del before, finished  # rows are on disk, so a run can have any number of them
        stack.callback(display.stop)
        stack.enter_context(_uncollected())
        stopped_by = await _all(run, open_, _at_once(config, model))
        rows = folder.rows()
        kept = tuple(rows[key] for key in ((q.id, arm.name) for q, arm in wanted) if key in rows)
        deficits = dict.fromkeys(name for engine in engines.values() for name in engine.deficits.names)
        return RunOutcome(rows=kept, stopped_by=stopped_by, deficits=tuple(sorted(deficits)))


def _failed(row: Mapping[str, Any]) -> bool:
    """Would the answer be different if nothing had failed?"""
    return row["error"] is not None or row.get("stop_reason") == "search_failed" or bool(row.get("lost_calls"))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Exempt what exists before the run from garbage collection: a twentieth of a call's CPU time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@asynccontextmanager
async def _model(config: RunConfig, conduct: Conduct, folder: RunFolder) -> AsyncIterator[LanguageModel]:
    """The model behind every row, or, for a replay, none."""
    player = conduct.player
    async with open_language_model(
        config.settings,
        ledger_path=folder.calls,
        paid_usd=folder.paid_usd(),
        reservations=folder.reservations,
        model=None if player is None else NoModel(),
    ) as model:
        if player is None:
            yield replace(model, tape=conduct.recorder, unusable={})
        else:  # needs no response cache, and must not drop its contents
            yield replace(
                model, tape=player, cache=None, connections=Recorded(settings=config.settings, run=player.run)
            )


async def _engines(
    config: RunConfig, conduct: Conduct, model: LanguageModel, stack: AsyncExitStack, *, warm: bool
) -> dict[Arm, Engine]:
    """An engine for every row, over one model, one ledger, one budget and, for each name, one encoder."""
    encoders: dict[str, AsyncEncoder] = {}
    engines: dict[Arm, Engine] = {}
    for arm in config.arms:
        settings = arm_settings(arm, config.settings)
        if settings.monitor_encoder not in encoders:
            encoders[settings.monitor_encoder] = await _encoder(settings.monitor_encoder, config, conduct, warm=warm)
        own = replace(model, settings=settings, choice=choose_provider(settings), draw=arm.repeat - 1)
        engines[arm] = await stack.enter_async_context(
            open_engine(
                settings,
                model=own,
                monitor_encoder=encoders[settings.monitor_encoder],
                without_deficits=arm.without_deficits,
            )
        )
    return engines


async def _warmed(model: LanguageModel, retriever: HybridRetriever | NoSearch | None) -> None:
    """Load what the first question would wait for, so that its latency is like the others'. Makes no call."""
    if isinstance(retriever, HybridRetriever):
        await retriever.encoder.queries([_ANY_TEXT])
    await model.warm()


async def _encoder(name: str, config: RunConfig, conduct: Conduct, *, warm: bool) -> AsyncEncoder:
    if conduct.player is not None:
        return AsyncEncoder(TapedEncoder(name=name, tape=conduct.player))
    choice = load_encoder(config.settings, name)
    if choice.note:
        _LOG.warning("The monitor's encoder: %s", choice.note)
    encoder = choice.encoder
    if warm:
        await asyncio.to_thread(encoder.encode_queries, [_ANY_TEXT])  # loads it, unseen by the recorder
    if conduct.recorder is None:
        return AsyncEncoder(encoder)
    return AsyncEncoder(TapedEncoder(name=name, tape=conduct.recorder, inner=encoder))


@asynccontextmanager
async def _retriever(
    config: RunConfig, conduct: Conduct, loaded: LoadedQuestions, display: Display
) -> AsyncIterator[HybridRetriever | NoSearch | None]:
    """The retriever of an `open_domain` run; a replay needs no corpus."""
    if conduct.player is not None:
        yield NoSearch() if config.mode == "open_domain" else None
        return
    async with open_domain(config, loaded, display.corpus) as retriever:
        yield retriever


def _at_once(config: RunConfig, model: LanguageModel) -> int:
    if config.concurrency is not None:
        return config.concurrency
    return _AT_ONCE_EMBEDDED if model.choice.provider.name == EMBEDDED else _AT_ONCE


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
