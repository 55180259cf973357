"""The service's resources: engine, corpora, keys, limits and audit log, opened once."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from ..agent.context import Task
from ..agent.derivation.values import as_quantity, same_value
from ..agent.engine import Engine, open_engine
from ..agent.grounded import Checks
from ..chat.memory import Limits
from ..chat.phrases import check_files
from ..errors import RequestError
from ..llm.ledger import LedgerRow
from ..llm.messages import Reply, Request
from ..llm.opening import Given, open_language_model
from ..llm.pricing import unpriced_models
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.hybrid import Retriever
from ..retrieval.opening import open_encoder, open_retriever
from ..settings import Settings
from .access.keys import Keys, open_keys
from .access.limits import ConcurrencyLimit, RateLimits, open_limits
from .access.wrong_keys import WrongKeys
from .answering.coaching import Coaches
from .answering.deadline import Budgets
from .answering.sessions import ClientSessions, open_client_sessions
from .audit.log import AuditLog, open_audit
from .metrics import Metrics
from .request_record import Client, ModelCall, RequestRecord
from .storage.database import open_database, require_writable
from .uploads.intake import Intake, open_intake

CONTEXT = "context"
"""The name under which answers from a supplied text are checked, since it has no corpus."""
QUESTIONS = "ask"
"""The window that counts questions; reads have another one."""
_MEMORY_OF_FAULTS_SECONDS = 60.0
_MEMORY_OF_WRITES_SECONDS = 1.0
_PROBE_BYTES = 65_536
_BEFORE_COUNTED = timedelta(seconds=3)
"""A request is counted after its key look-up, which can be this much later than its arrival."""


@dataclass(kw_only=True)
class CallLog:
    """Adds every model call to the record of its request; replays nothing."""

    records: dict[str, RequestRecord] = field(default_factory=dict)

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception] | None:
        """See `Tape`."""
        return None

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """See `Tape`."""
        record = self.records.get(row.question_id)
        if record is not None:
            record.calls.append(ModelCall(row=row, request=request, outcome=outcome))


@dataclass(frozen=True, kw_only=True)
class Service:
    """The resources that serve requests. `faults` are the times (`time.monotonic`) at which an index last failed."""

    settings: Settings
    engine: Engine
    retrievers: Mapping[str, Retriever]
    checks: Mapping[str, Checks]
    budgets: Budgets
    keys: Keys
    limits: RateLimits
    places: ConcurrencyLimit
    audit: AuditLog
    sessions: ClientSessions
    calls: CallLog
    coaches: Coaches
    wrong_keys: WrongKeys
    intake: Intake
    metrics: Metrics
    unpriced: tuple[str, ...] = ()
    faults: dict[str, float] = field(default_factory=dict)
    _written: list[Any] = field(default_factory=lambda: [float("-inf"), []], repr=False)

    async def unwritable(self) -> list[str]:
        """What cannot be written, so that questions fail or are not recorded: `disk`, `database`; looked up briefly."""
        at, found = self._written
        if time.monotonic() - at > _MEMORY_OF_WRITES_SECONDS:
            found = []
            try:
                await asyncio.to_thread(_require_space, self.settings.marag_data_dir)
            except OSError:
                found.append("disk")
            try:
                await require_writable(self.audit.engine, self.budgets.database)
            except (SQLAlchemyError, OSError, TimeoutError):
                found.append("database")
            self._written[:] = [time.monotonic(), found]
        return list(found)

    def degraded(self) -> list[str]:
        """The degraded parts: indexes that failed in the last minute, and the audit database."""
        now = time.monotonic()
        sides = [side for side, at in self.faults.items() if now - at < _MEMORY_OF_FAULTS_SECONDS]
        return sorted(sides) + (["audit"] if self.audit.fault is not None else [])

    async def require_affordable(self, client: Client) -> None:
        """Raise `RequestError` if a key has reached its daily cap, or its cost cannot be determined.

        Requests in progress are not counted yet, so the last questions of a day may exceed the cap by their own cost.
        """
        if client.daily_usd is None:
            return
        if self.unpriced:
            raise RequestError(
                503, "unpriced_model", "The model has no known price, so the key's daily cap cannot be enforced."
            )
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        try:
            async with asyncio.timeout(self.budgets.database):
                spent = await self.audit.spent(client.id, midnight)
        except (SQLAlchemyError, OSError, TimeoutError):
            raise RequestError(503, "unavailable", "The key's daily cap cannot be checked; try again later.") from None
        if spent >= client.daily_usd:
            left = int((midnight + timedelta(days=1) - now).total_seconds()) + 1
            raise RequestError(
                429,
                "daily_cost_cap",
                f"The key has spent its {client.daily_usd:g} USD for this UTC day; try again tomorrow.",
                retry_after=left,
            )


@asynccontextmanager
async def open_service(
    settings: Settings,
    corpora: Sequence[str],
    *,
    model: Given = None,
    monitor_encoder: AsyncEncoder | None = None,
    retrievers: Mapping[str, Retriever] | None = None,
) -> AsyncIterator[Service]:
    """The service as the settings describe it, closed at the end; components passed in are used instead.

    Raises a `MetaRagError` that says what prevents it from serving.
    """
    check_prompts(settings.prompts_dir, methods=settings.methods_dir)
    check_files(settings.coach_dir)
    names = tuple(dict.fromkeys(corpora if retrievers is None else retrievers))
    checks = {name: Checks.of(settings, name) for name in (*names, CONTEXT)}
    calls = CallLog()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        audit = await stack.enter_async_context(open_audit(database, settings.marag_data_dir / "audit"))
        limits = await stack.enter_async_context(open_limits(settings))
        await _recall(audit, limits)
        opened = await stack.enter_async_context(open_language_model(settings, model=model))
        opened.budget.counting = True  # so that a key's daily cap includes calls cut off before billing
        engine = await stack.enter_async_context(
            open_engine(settings, model=replace(opened, tape=calls), monitor_encoder=monitor_encoder)
        )
        if retrievers is None:
            encoder = await asyncio.to_thread(open_encoder, settings)
            retrievers = {
                name: await stack.enter_async_context(open_retriever(settings, name, encoder=encoder)) for name in names
            }
        remembered = Limits.of(settings)
        sessions = await stack.enter_async_context(open_client_sessions(settings.marag_data_dir, remembered))
        await _warmed(engine)
        metrics, budgets = Metrics(), Budgets.of(settings)
        intake = await stack.enter_async_context(open_intake(settings, retrievers, metrics))
        yield Service(
            settings=settings,
            engine=engine,
            retrievers=retrievers,
            checks=checks,
            budgets=budgets,
            keys=open_keys(database, settings, look_up_seconds=budgets.database),
            limits=limits,
            places=ConcurrencyLimit(limit=settings.service_concurrency),
            audit=audit,
            sessions=sessions,
            calls=calls,
            coaches=Coaches(engine=engine, retrievers=retrievers),
            wrong_keys=WrongKeys(per_minute=settings.service_wrong_keys_per_minute),
            intake=intake,
            metrics=metrics,
            unpriced=unpriced_models(opened.settings, at=opened.clock()),
        )


async def _warmed(engine: Engine) -> None:
    """Load what a first question would wait for, since it has the same time limit as the others. Calls no model."""
    await engine.model.warm()
    await engine.monitor_encoder.queries(["Is everything there?"])
    await engine.run(Task(question="Is everything there?", evidence=(), grounded=True, method="service"))
    await asyncio.to_thread(_compared)


def _compared() -> None:
    """Load the libraries that compare values, some of which take a second."""
    same_value("French", "Spain")
    as_quantity("3 metres")


def _require_space(folder: Path) -> None:
    """Raise `OSError` if a record cannot be stored in a folder."""
    with TemporaryFile(dir=folder, buffering=0) as file:
        file.write(bytes(_PROBE_BYTES))
        os.fsync(file.fileno())


async def _recall(audit: AuditLog, limits: RateLimits) -> None:
    """Continue the sliding minute of an earlier process."""
    since = datetime.now(UTC) - timedelta(minutes=1) - _BEFORE_COUNTED
    for client_id, count in (await audit.admitted(since)).items():
        await limits.recall(client_id, QUESTIONS, count)
