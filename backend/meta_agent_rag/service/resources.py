"""The service's resources: engine, corpora, coaches, keys, limits, sessions, audit log and uploads, opened once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryFile

from sqlalchemy.exc import SQLAlchemyError

from ..agent.context import Task
from ..agent.derivation.values import as_quantity, same_value
from ..agent.engine import Engine, open_engine
from ..agent.grounded import Checks
from ..chat.coach.coach import Coach
from ..chat.coach.scope import TopicScope, subject_of
from ..chat.phrases import check_files
from ..chat.store import Sessions, open_sessions
from ..errors import MetaRagError, RequestError, StorageError
from ..grounding.links import without_links
from ..llm.opening import Given, open_language_model
from ..llm.pricing import unpriced_models
from ..llm.stages import endpoints_in_use
from ..prompts import check_prompts
from ..retrieval.batching import AsyncEncoder
from ..retrieval.corpus.catalogue import Catalogue
from ..retrieval.hybrid import HybridRetriever, Retriever
from ..retrieval.open_retriever import open_encoder, open_retriever
from ..settings import Settings
from ..text.sentences import sentences
from .access import Client, Keys, RateLimits, open_limits
from .audit import AuditLog, open_audit, row_of
from .database import SESSIONS, looked_up, open_database, require_writable, within
from .request import CallLog, RequestContext
from .uploads import Uploads, open_uploads

_LOG = logging.getLogger(__name__)
DEFAULT_SECONDS = 5.0
EMBEDDED_SECONDS = 120.0
_PROBE_BYTES = 65_536


@dataclass(kw_only=True)
class Service:
    """The resources that serve requests. `seconds` is the deadline of a request, and its parts are shares of that:
    `search_seconds` for a search in one index, `finish_seconds` reserved for the checks and the record.
    """

    settings: Settings
    engine: Engine
    retrievers: Mapping[str, Retriever]
    checks: Checks
    seconds: float
    keys: Keys
    limits: RateLimits
    places: asyncio.Semaphore
    audit: AuditLog
    sessions: Sessions
    uploads: Uploads
    unpriced: tuple[str, ...] = ()
    _coaches: dict[str, tuple[int, Coach]] = field(default_factory=dict, repr=False)
    _probe: "asyncio.Task[tuple[list[str], bool]] | None" = None

    @property
    def search_seconds(self) -> float:
        """Seconds for a search in one index."""
        return 0.4 * self.seconds

    @property
    def finish_seconds(self) -> float:
        """Seconds for the checks and the record."""
        return 0.1 * self.seconds

    @property
    def database_seconds(self) -> float:
        """Seconds for one database look-up: two of them, for a key and its daily cost, fit into a request."""
        return min(2.0, self.search_seconds)

    def retriever(self, corpus: str, note: Callable[[str, Exception], None]) -> Retriever | None:
        """A served corpus; of a hybrid one, either index may fail or be late, and `note` is told which (`dense`)."""
        retriever = self.retrievers.get(corpus)
        if isinstance(retriever, HybridRetriever):
            return replace(retriever, side_seconds=self.search_seconds, on_fault=note)
        return retriever

    def catalogue(self, corpus: str | None) -> Catalogue | None:
        """The documents of a served corpus; `None` if it has no list of them."""
        retriever = self.retrievers.get(corpus or "")
        return retriever.corpus.catalogue if isinstance(retriever, HybridRetriever) else None

    async def coach(self, corpus: str) -> Coach:
        """The coach of a corpus, whose topics are read again after the corpus has changed."""
        retriever, catalogue = self.retrievers[corpus], self.catalogue(corpus)
        version = 0 if catalogue is None else await asyncio.to_thread(catalogue.edits)
        held = self._coaches.get(corpus)
        if held is None or held[0] != version:
            subject = await asyncio.to_thread(subject_of, catalogue)
            encoder = retriever.encoder if isinstance(retriever, HybridRetriever) else self.engine.monitor_encoder
            scope = TopicScope(subject=subject, encoder=encoder, threshold=self.settings.scope_threshold)
            coach = Coach(model=self.engine.model, retriever=retriever, scope=scope, topics=subject.topics)
            self._coaches[corpus] = held = (version, coach)
        return held[1]

    async def condition(self) -> tuple[list[str], bool]:
        """What is degraded, and whether questions can be answered.

        Anyone may ask, so those who ask at the same time share one probe.
        """
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._probed())
        return await asyncio.shield(self._probe)

    async def _probed(self) -> tuple[list[str], bool]:
        unwritable, (silent, blind) = await asyncio.gather(self._unwritable(), self._unsearchable())
        degraded = [*(["audit"] if self.audit.fault else []), *unwritable, *silent]
        return degraded, not (unwritable or blind)

    async def _unwritable(self) -> list[str]:
        """What cannot be written, so that questions fail or are not recorded: `disk`, `database`."""

        def require_space() -> None:
            with TemporaryFile(dir=self.settings.marag_data_dir, buffering=0) as file:
                file.write(bytes(_PROBE_BYTES))

        found = []
        try:
            await asyncio.to_thread(require_space)
        except OSError:
            found.append("disk")
        try:
            await within(require_writable(self.audit.engine), self.database_seconds)
        except (SQLAlchemyError, OSError):
            found.append("database")
        return found

    async def _unsearchable(self) -> tuple[list[str], bool]:
        """The indexes that do not respond, as `corpus: index`; and whether no corpus can be searched."""
        faults: list[str] = []

        async def can_search(corpus: str) -> bool:
            retriever = self.retriever(corpus, lambda index, _: faults.append(f"{corpus}: {index}"))
            assert retriever is not None
            try:
                await within(retriever.retrieve([corpus], k=1), 2 * self.search_seconds)
            except (MetaRagError, TimeoutError):
                faults.append(f"{corpus}: search")
                return False
            return True

        able = await asyncio.gather(*map(can_search, self.retrievers))
        return sorted(set(faults)), bool(able) and not any(able)

    async def record(self, context: RequestContext, status: int) -> None:
        """Store the audit row of a request once, before its response is sent, so that every answer has one.

        Raises `StorageError`, which is also logged.
        """
        if not context.asks or context.known_client is None or context.recorded:
            return
        context.recorded = True
        try:
            await self.audit.store(row_of(context, status))
        except StorageError as error:
            fields = {"request_id": context.request_id, "why": str(error)}
            _LOG.error("An audit record cannot be stored.", extra={"fields": fields})
            raise

    async def require_affordable(self, client: Client) -> None:
        """Raise `RequestError` if a key has reached its daily cap, or its cost cannot be determined.

        Requests in progress are not counted yet, so the last questions of a day may exceed the cap by their own cost.
        """
        if client.daily_usd is None:
            return
        if self.unpriced:
            words = "The model has no known price, so the key's daily cap cannot be enforced."
            raise RequestError(503, "unpriced_model", words)
        now = datetime.now(UTC)
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        spent = await looked_up(self.audit.spent(client.id, midnight), self.database_seconds)
        if spent >= client.daily_usd:
            left = int((midnight + timedelta(days=1) - now).total_seconds()) + 1
            words = f"The key has spent its {client.daily_usd:g} USD for this UTC day; try again tomorrow."
            raise RequestError(429, "daily_cost_cap", words, retry_after=left)


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
    embedded = any(endpoint.is_embedded for endpoint in endpoints_in_use(settings).values())
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings))
        audit = await stack.enter_async_context(open_audit(database, settings.marag_data_dir))
        limits = await stack.enter_async_context(open_limits(settings))
        opened = await stack.enter_async_context(open_language_model(settings, model=model))
        opened.budget.counting = True  # so that a key's daily cap includes calls cut off before billing
        engine = await stack.enter_async_context(
            open_engine(settings, model=replace(opened, tape=CallLog()), monitor_encoder=monitor_encoder)
        )
        if retrievers is None:
            encoder = await asyncio.to_thread(open_encoder, settings)
            retrievers = {
                name: await stack.enter_async_context(open_retriever(settings, name, encoder=encoder))
                for name in dict.fromkeys(corpora)
            }
        sessions = await stack.enter_async_context(open_sessions(settings.marag_data_dir / SESSIONS))
        await _warmed(engine)
        service = Service(
            settings=settings,
            engine=engine,
            retrievers=retrievers,
            checks=Checks.of(settings),
            seconds=settings.service_deadline_seconds or (EMBEDDED_SECONDS if embedded else DEFAULT_SECONDS),
            keys=Keys(engine=database),
            limits=limits,
            places=asyncio.Semaphore(settings.service_concurrency),
            audit=audit,
            sessions=sessions,
            uploads=await stack.enter_async_context(open_uploads(settings, database, retrievers)),
            unpriced=unpriced_models(opened.settings, at=opened.clock()),
        )
        service.keys.look_up_seconds = service.database_seconds
        yield service


async def _warmed(engine: Engine) -> None:
    """Load what a first question would wait for, since it has the same time limit as the others. Calls no model."""
    question = "How high is the tower?"
    await engine.model.warm()
    await engine.monitor_encoder.queries([question])
    await engine.run(Task(question=question, evidence=(), grounded=True, method="service"))
    await asyncio.to_thread(sentences, question)
    await asyncio.to_thread(without_links, question, ())
    await asyncio.to_thread(same_value, "French", "Spain")
    await asyncio.to_thread(as_quantity, "3 metres")
