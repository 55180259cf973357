"""The audit log: one row for each response, stored before it is sent.

Responses wait in one queue for their rows to be inserted together. While the database is unavailable, rows go to
`<data_dir>/audit/waiting.jsonl` and are inserted later; a row that is inserted twice is kept once, by its query id.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from filelock import FileLock
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.ext.asyncio import AsyncEngine

from ..chat.coach.coach import CoachReply
from ..chat.session import DocumentsReply, Turn
from ..errors import StorageError
from ..journal import Journal, read_journal
from ..llm.ledger import total
from ..llm.messages import Reply
from ..retrieval.passage import Found
from ..text.normalise import encodable
from .database import AUDIT, in_utc, require_writable, within
from .request import ModelCall, RequestContext, new_id
from .schemas import reply_fields

_LOG = logging.getLogger(__name__)
_BATCH = 500
_INSERT_SECONDS = 1.0
_LAST_SECONDS = 1.5
_RETRY_SECONDS = 2.0
Row = Mapping[str, Any]


@dataclass(kw_only=True)
class AuditLog:
    """`waiting` counts the rows of this machine that are not in the database; `fault` is why it refuses them."""

    engine: AsyncEngine
    folder: Path
    waiting: int = 0
    fault: str | None = None
    _queue: "asyncio.Queue[tuple[Row, asyncio.Future[None]]]" = field(default_factory=asyncio.Queue, repr=False)

    @property
    def file(self) -> Path:
        """The rows that wait for the database."""
        return self.folder / "waiting.jsonl"

    async def store(self, row: Row) -> None:
        """Store a row: in the database, or on this machine. Raises `StorageError` if neither is possible."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((row, stored))
        await asyncio.shield(stored)

    async def read(self, query_id: str, client_id: str) -> dict[str, Any] | None:
        """The row of a response to this client, or `None`. Raises `SQLAlchemyError` or `OSError`."""
        query = select(AUDIT).where(AUDIT.c.query_id == query_id, AUDIT.c.client_id == client_id)
        async with self.engine.connect() as connection:
            found = (await connection.execute(query)).first()
        return None if found is None else as_json(dict(found._mapping))

    async def spent(self, client_id: str, since: datetime) -> float:
        """The cost of a client's questions since a moment, in USD. Raises `SQLAlchemyError` or `OSError`."""
        query = select(func.coalesce(func.sum(AUDIT.c.cost_usd), 0.0))
        async with self.engine.connect() as connection:
            found = await connection.execute(query.where(AUDIT.c.client_id == client_id, AUDIT.c.at >= since))
            return float(found.scalar_one())

    async def admitted(self, since: datetime) -> dict[str, int]:
        """The number of admitted requests of each client since a moment."""
        query = select(AUDIT.c.client_id, func.count()).group_by(AUDIT.c.client_id)
        query = query.where(AUDIT.c.at >= since, AUDIT.c.error.is_distinct_from("rate_limited"))
        async with self.engine.connect() as connection:
            return {str(row[0]): int(row[1]) for row in await connection.execute(query)}

    async def keep_writing(self) -> None:
        """Store queued rows until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < _BATCH:
                batch.append(self._queue.get_nowait())
            try:
                await self._write([row for row, _ in batch])
            except Exception as error:  # noqa: BLE001  # each response that waits for its row is told
                for _, stored in batch:
                    if not stored.done():
                        stored.set_exception(unstorable(self.file, error))
            for _, stored in batch:
                if not stored.done():
                    stored.set_result(None)

    async def keep_draining(self) -> None:
        """Insert the rows that wait on this machine until cancelled."""
        while True:
            await asyncio.sleep(_RETRY_SECONDS)
            await self.drain()

    async def drain(self) -> None:
        """Insert the rows that wait on this machine, if the database is available."""
        try:
            for file in await asyncio.to_thread(self._taken):
                rows = (await asyncio.to_thread(read_journal, file)).rows
                for start in range(0, len(rows), _BATCH):
                    await self._insert(rows[start : start + _BATCH])
                file.unlink(missing_ok=True)
            if self.fault is not None:
                await within(require_writable(self.engine), _INSERT_SECONDS)
                _LOG.info("The audit database is available again; all records were written.")
            self.fault, self.waiting = None, 0
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            self._failed(error)

    def _taken(self) -> list[Path]:
        """The files of waiting rows, to which nothing is added any more."""
        if self.file.exists():
            with waiting_lock(self.folder), suppress(FileNotFoundError):  # another process was faster
                self.file.rename(self.folder / f"waiting-{new_id()}.jsonl")
        return sorted(self.folder.glob("waiting-*.jsonl"))

    async def _write(self, rows: Sequence[Row]) -> None:
        if self.fault is None:
            try:
                await self._insert(rows)
                return
            except (SQLAlchemyError, OSError, TimeoutError) as error:
                self._failed(error)
        await asyncio.to_thread(_append, self.file, rows)
        self.waiting += len(rows)

    async def _insert(self, rows: Sequence[Row]) -> None:
        """Insert rows; one that the database rejects is set aside, so that it does not hold up the others."""
        try:
            await within(self._inserted(rows), _INSERT_SECONDS)
        except (StatementError, KeyError, ValueError, OverflowError) as error:
            if isinstance(error, DBAPIError) and not isinstance(error, DataError | IntegrityError):
                raise  # the database itself failed
            if len(rows) > 1:
                for row in rows:
                    await self._insert([row])
                return
            _LOG.error("The database rejected an audit row (%s); it is in `rejected.jsonl`.", type(error).__name__)
            await asyncio.to_thread(_append, self.folder / "rejected.jsonl", rows)

    async def _inserted(self, rows: Sequence[Row]) -> None:
        insert = (postgresql.insert if self.engine.dialect.name == "postgresql" else sqlite.insert)(AUDIT)
        async with self.engine.execution_options(immediate=True).begin() as connection:
            values = [{**row, "at": datetime.fromisoformat(row["at"]).astimezone(UTC)} for row in rows]
            await connection.execute(insert.on_conflict_do_nothing(index_elements=[AUDIT.c.query_id]), values)

    def _failed(self, error: Exception) -> None:
        if self.fault is None:
            _LOG.warning("The audit database is unavailable (%s); records wait on this machine.", type(error).__name__)
        self.fault = type(error).__name__


@asynccontextmanager
async def open_audit(engine: AsyncEngine, data_dir: Path) -> AsyncIterator[AuditLog]:
    """The audit log, writing while it is open; rows that earlier processes left are inserted first."""
    log = AuditLog(engine=engine, folder=data_dir / "audit")
    log.waiting = sum(len(read_journal(file).rows) for file in log.folder.glob("waiting*.jsonl"))
    await log.drain()
    tasks = [asyncio.create_task(log.keep_writing()), asyncio.create_task(log.keep_draining())]
    try:
        yield log
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        try:
            await within(log.drain(), _LAST_SECONDS)
        except TimeoutError:
            _LOG.warning("%d audit records wait in %r for the next start.", log.waiting, str(log.file))


def waiting_lock(folder: Path) -> FileLock:
    """The lock under which the files of an audit folder change: several processes add to them, and empty them."""
    return FileLock(folder / "lock", thread_local=False)


def _append(file: Path, rows: Sequence[Row]) -> None:
    """Append rows to a file of the audit folder. Raises `StorageError` or `OSError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with waiting_lock(file.parent):
        journal = Journal(file)
        try:
            for row in rows:
                journal.append(row)
        finally:
            journal.close()


def unstorable(file: Path, error: Exception) -> StorageError:
    """The error to report for a file that cannot be written."""
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{str(file)!r} cannot be written ({error}); free disk space, or set MARAG_DATA_DIR.")


def row_of(context: RequestContext, status: int) -> dict[str, Any]:
    """The row of a response about to be sent with `status`; pure JSON, without values that a database rejects."""
    client, totals = context.known_client, total(call.row for call in context.calls)
    row = {
        "query_id": context.query_id,
        "at": context.at.isoformat(),
        "answer_id": context.answer_id,
        "request_id": context.request_id,
        "client_id": "" if client is None else client.id,
        "client_name": "" if client is None else client.name,
        "endpoint": context.endpoint[:64],
        "status": status,
        "success": status == 200 and context.error is None,
        "error": context.error,
        "question": context.question,
        "cost_usd": _cost(context.calls),
        "record": {
            "message": context.message,
            "source_mode": context.source_mode,
            "mode": context.mode,
            "corpus": context.corpus,
            "session": context.session,
            "queries": context.queries,
            "degraded": context.degraded,
            "dropped": [asdict(gone) for gone in context.dropped],
            "seconds": context.seconds,
            "model_calls": [_call(call) for call in context.calls],
            "prompt_tokens": totals.prompt_tokens,
            "cache_hit_tokens": totals.cache_hit_tokens,
            "completion_tokens": totals.completion_tokens,
            **dict.fromkeys(_ANSWER),
            **({} if context.turn is None else _answer(context.turn)),
        },
        "prompts": [_prompt(call) for call in context.calls],
    }
    return cast("dict[str, Any]", _storable(row))


def as_json(row: Row) -> dict[str, Any]:
    """A row of the table as one flat record: its time as text in UTC, each model call with its messages and reply."""
    record = dict(row["record"])
    prompts = row["prompts"] or [{}] * len(record["model_calls"])
    record["model_calls"] = [call | kept for call, kept in zip(record["model_calls"], prompts, strict=True)]
    head = {name: value for name, value in row.items() if name not in {"record", "prompts"}}
    return {**head, "at": in_utc(row["at"]).isoformat(), **record}


_ANSWER = (
    *("answer", "short_answer", "refused", "stop_reason", "rounds", "citations", "passages", "checks"),
    *("confidence_score", "confidence_level", "confidence_parts", "coach_success", "hint", "topic"),
)


def _answer(turn: Turn) -> dict[str, Any]:
    """The fields of the answer."""
    fields, reply = reply_fields(turn), turn.reply
    if isinstance(reply, CoachReply):
        fields["coach_success"] = fields.pop("success")
        fields["passages"] = [_passage(found) for found in reply.trace.evidence]
        fields["checks"] = {"violations": list(reply.trace.violations)}
    if isinstance(reply, DocumentsReply):
        result = reply.grounded
        fields["citations"] = [asdict(citation) for citation in result.citations]
        fields["passages"] = [_passage(found) for found in result.answer.evidence]
        fields["checks"] = {
            "quotes": list(result.quotes),
            "leaks": list(result.leaks),
            "removed_citations": result.removed,
            "claims": [{"text": claim.text, **asdict(support)} for claim, support in result.claims],
        }
    return fields


def _cost(calls: Sequence[ModelCall]) -> float | None:
    """The cost in USD; if a call's bill is unknown, its maximum counts. `None` if a price is unknown."""
    spent = Decimal(0)
    for call in (one.row for one in calls):
        cost = call.paid_usd if call.cost_usd is None else call.cost_usd
        if cost is None and call.error is None:
            return None
        spent += cost or 0
    return float(spent)


def _passage(found: Found) -> dict[str, Any]:
    names = ("id", "doc_id", "title")
    scores = ("score", "dense", "lexical", "via")
    return {name: getattr(found.passage, name) for name in names} | {name: getattr(found, name) for name in scores}


def _call(call: ModelCall) -> dict[str, Any]:
    row = call.row
    return {
        "stage": row.stage,
        "model": row.model,
        "round": row.round,
        "cached": row.cached,
        "seconds": row.latency_s,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": None if row.cost_usd is None else float(row.cost_usd),
        "error": row.error,
    }


def _prompt(call: ModelCall) -> dict[str, Any]:
    messages = [{"role": one.role, "content": one.content} for one in call.request.messages]
    return {"messages": messages, "reply": call.outcome.text if isinstance(call.outcome, Reply) else None}


def _storable(value: Any) -> Any:
    """The value without null bytes and lone surrogates at any depth; numbers that are not finite become `None`."""
    if isinstance(value, str):
        return encodable(value).replace("\x00", "\ufffd")
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(item) for item in value]
    return value if value is None or isinstance(value, bool | int) else str(value)
