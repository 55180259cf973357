"""The audit log: one row for each response, stored before it is sent; its retention and export.

Responses wait in one queue for their rows to be inserted together. While the database is unavailable, rows go to
`<data_dir>/audit/waiting.jsonl` and are inserted later; a row that is inserted twice is kept once, by its query id.
Rows that the database rejects go to `rejected.jsonl` beside it.
"""

import asyncio
import json
import logging
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import ColumnElement, delete, exc, func, null, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ..chat.coach.coach import CoachReply
from ..chat.session import DocumentsReply, Turn
from ..chat.store import open_sessions
from ..discovery import named
from ..errors import InputError, StorageError
from ..journal import Journal, read_journal
from ..llm.messages import Reply
from ..llm.providers import EMBEDDED
from ..retrieval.passage import Found
from ..settings import Settings
from ..text.normalise import encodable
from .access import Client, Keys
from .database import AUDIT, SESSIONS, UPLOADS, within
from .request import ModelCall, RequestContext, new_id
from .schemas import reply_fields

_LOG = logging.getLogger(__name__)
_BATCH = 500
_INSERT_SECONDS = 1.0
_LAST_SECONDS = 1.5
_RETRY_SECONDS = 2.0
_NULL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""A null byte in JSON; behind a backslash of the text itself, the same characters are only text."""
Row = Mapping[str, Any]


@dataclass(kw_only=True)
class AuditLog:
    """`fault` is why the database takes no rows, while they wait on this machine."""

    engine: AsyncEngine
    folder: Path
    fault: str | None = None
    _queue: "asyncio.Queue[tuple[Row, asyncio.Future[None]]]" = field(default_factory=asyncio.Queue, repr=False)

    async def store(self, row: Row) -> None:
        """Store a row: in the database, or on this machine. Raises `StorageError` if neither is possible."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((row, stored))
        await asyncio.shield(stored)

    async def read(self, query_id: str, client_id: str) -> dict[str, Any] | None:
        """The row of a response to this client, or `None`. Raises `SQLAlchemyError` or `OSError`."""
        found = await selected(self.engine, AUDIT.c.query_id == query_id, AUDIT.c.client_id == client_id)
        return found[0] if found else None

    async def spent(self, client_id: str, since: datetime) -> float:
        """The cost of a client's questions since a moment, in USD. Raises `SQLAlchemyError` or `OSError`."""
        query = select(func.coalesce(func.sum(AUDIT.c.cost_usd), 0.0))
        async with self.engine.connect() as connection:
            found = await connection.execute(query.where(AUDIT.c.client_id == client_id, AUDIT.c.at >= since))
            return float(found.scalar_one())

    async def keep_writing(self) -> None:
        """Store queued rows until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < _BATCH:
                batch.append(self._queue.get_nowait())
            fault: Exception | None = None
            try:
                await self._write([row for row, _ in batch])
            except Exception as error:  # noqa: BLE001  # each response that waits for its row is told
                fault = error if isinstance(error, StorageError) else StorageError(f"A row cannot be stored: {error}.")
            for _, stored in batch:
                if not stored.done():
                    stored.set_result(None) if fault is None else stored.set_exception(fault)

    async def keep_draining(self) -> None:
        """Insert the rows that wait on this machine until cancelled."""
        while True:
            await asyncio.sleep(_RETRY_SECONDS)
            await self.drain()

    async def drain(self) -> None:
        """Insert the rows that wait on this machine, if the database is available."""
        try:
            for file in await asyncio.to_thread(self._taken):
                await self._insert((await asyncio.to_thread(read_journal, file)).rows)
                file.unlink(missing_ok=True)
        except (exc.SQLAlchemyError, OSError) as error:
            self._failed(error)
            return
        if self.fault is not None:
            _LOG.info("The audit database is available again; the records that waited were written.")
        self.fault = None

    def _taken(self) -> list[Path]:
        """The files of waiting rows, to which nothing is added any more."""
        file = self.folder / "waiting.jsonl"
        if file.exists():
            with FileLock(self.folder / "lock"), suppress(FileNotFoundError):  # another process was faster
                file.rename(self.folder / f"waiting-{new_id()}.jsonl")
        return sorted(self.folder.glob("waiting-*.jsonl"))

    async def _write(self, rows: Sequence[Row]) -> None:
        if self.fault is None:
            try:
                await self._insert(rows)
                return
            except (exc.SQLAlchemyError, OSError) as error:
                self._failed(error)
        await asyncio.to_thread(self._append, "waiting.jsonl", rows)

    async def _insert(self, rows: Sequence[Row]) -> None:
        """Insert rows; each that the database rejects is set aside, so that the others go on.

        Raises `SQLAlchemyError` or `OSError` if the database is unavailable.
        """
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            try:
                await within(self._inserted(batch), _INSERT_SECONDS)
            except _UNAVAILABLE:
                raise
            except Exception as error:  # noqa: BLE001  # many kinds, by driver and value
                await within(self.read("", ""), _INSERT_SECONDS)  # raises if it is not for a row, but for the table
                if len(batch) > 1:
                    for row in batch:
                        await self._insert([row])
                    continue
                _LOG.error("The audit database rejects a record, which was set aside (%s).", type(error).__name__)
                await asyncio.to_thread(self._append, "rejected.jsonl", batch)

    async def _inserted(self, rows: Sequence[Row]) -> None:
        statement = (postgresql.insert if self.engine.dialect.name == "postgresql" else sqlite.insert)(AUDIT)
        async with self.engine.execution_options(immediate=True).begin() as connection:
            unknown = statement.on_conflict_do_nothing(index_elements=[AUDIT.c.query_id])
            await connection.execute(unknown, [dict(row) for row in rows])

    def _append(self, name: str, rows: Sequence[Row]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "lock"):  # several processes add to the file, and take it away
            journal = Journal(self.folder / name)
            try:
                for row in rows:
                    journal.append(row)
            finally:
                journal.close()

    def _failed(self, error: Exception) -> None:
        if self.fault is None:
            _LOG.warning("The audit database is unavailable (%s); records wait on this machine.", type(error).__name__)
        self.fault = type(error).__name__


_UNAVAILABLE = (exc.OperationalError, exc.InternalError, exc.TimeoutError, OSError)
"""Errors that concern no single row."""


@asynccontextmanager
async def open_audit(engine: AsyncEngine, data_dir: Path) -> AsyncIterator[AuditLog]:
    """The audit log, writing while it is open; rows that earlier processes left are inserted first."""
    log = AuditLog(engine=engine, folder=data_dir / "audit")
    await log.drain()
    tasks = [asyncio.create_task(log.keep_writing()), asyncio.create_task(log.keep_draining())]
    try:
        yield log
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        with suppress(TimeoutError):  # what waits is inserted at the next start
            await within(log.drain(), _LAST_SECONDS)


async def selected(
    engine: AsyncEngine, *conditions: ColumnElement[bool], latest: int | None = None
) -> list[dict[str, Any]]:
    """Records, the oldest first; with `latest`, at most so many of the newest."""
    query = select(AUDIT).where(*conditions).order_by(AUDIT.c.at.desc(), AUDIT.c.query_id.desc()).limit(latest)
    async with engine.connect() as connection:
        return [as_json(row._mapping) for row in reversed((await connection.execute(query)).all())]


async def export(
    engine: AsyncEngine, path: Path, *conditions: ColumnElement[bool], client_id: str | None = None
) -> int:
    """Write records into a new JSONL file, the oldest first; returns their number.

    Raises `InputError` if it exists, and `UnknownNameError` if there is no such key.
    """
    if client_id is not None:
        await _key(engine, client_id)
        conditions = (*conditions, AUDIT.c.client_id == client_id)
    count, query = 0, select(AUDIT).where(*conditions).order_by(AUDIT.c.at, AUDIT.c.query_id)
    try:
        file = await asyncio.to_thread(path.open, "x", encoding="utf-8")
    except FileExistsError:
        raise InputError(f"{str(path)!r} already exists; name a new file.") from None
    with file:
        async with engine.connect() as connection, connection.stream(query) as rows:
            async for row in rows:
                file.write(json.dumps(as_json(row._mapping), ensure_ascii=False) + "\n")
                count += 1
    return count


async def _key(engine: AsyncEngine, id_: str) -> Client:
    keys = {key.id: key for key in await Keys(engine=engine).all()}
    return named("key", id_, keys)


async def prune(engine: AsyncEngine, settings: Settings, now: datetime, *, dry_run: bool = False) -> dict[str, int]:
    """Remove records after AUDIT_WARM_DAYS, and prompts and replies, with sessions unused for as long, after
    AUDIT_HOT_DAYS; returns how many of each.
    """
    hot, warm = (now - timedelta(days=days) for days in (settings.audit_hot_days, settings.audit_warm_days))
    async with open_sessions(settings.marag_data_dir / SESSIONS) as sessions:
        unused = await sessions.names(before=hot)
        for name in () if dry_run else unused:
            await sessions.drop(name)
    if not dry_run:
        await asyncio.to_thread(_keep_rejected, settings.marag_data_dir / "audit", partial(_aged, hot=hot, warm=warm))
    async with _trial(engine, dry_run) as connection:
        expired = await connection.execute(delete(AUDIT).where(AUDIT.c.at < warm))
        whole = (AUDIT.c.at < hot) & AUDIT.c.prompts.is_not(null())
        slimmed = await connection.execute(update(AUDIT).where(whole).values(prompts=null()))
    return {"slimmed": slimmed.rowcount, "expired": expired.rowcount, "sessions": len(unused)}


async def forget(engine: AsyncEngine, settings: Settings, client_id: str, *, dry_run: bool) -> dict[str, int]:
    """Delete everything recorded about a client: its records, its sessions, and the states and files of its uploads.

    Returns how many records and uploads; what is indexed stays in its corpus. Raises `UnknownNameError` if there is no
    such key, `InputError` if it is still valid, `StorageError` while records wait for the database.
    """
    data_dir = settings.marag_data_dir
    if (await _key(engine, client_id)).state == "valid":  # the id is also the name of a folder to delete
        words = f"The key {client_id!r} is still valid; revoke it first: `marag keys revoke {client_id}`."
        raise InputError(words)
    async with open_audit(engine, data_dir) as log:
        if log.fault is not None:
            raise StorageError("Records wait on this machine for the database; repeat this once it takes them.")
    async with _trial(engine, dry_run) as connection:
        records = await connection.execute(delete(AUDIT).where(AUDIT.c.client_id == client_id))
        uploads = await connection.execute(delete(UPLOADS).where(UPLOADS.c.client_id == client_id))
    if not dry_run:
        await asyncio.to_thread(shutil.rmtree, data_dir / "uploads" / client_id, ignore_errors=True)
        await asyncio.to_thread(
            _keep_rejected, data_dir / "audit", lambda row: row if row.get("client_id") != client_id else None
        )
        async with open_sessions(data_dir / SESSIONS) as sessions:
            for name in await sessions.names():
                if name.startswith(f"{client_id}."):
                    await sessions.drop(name)
    return {"records": records.rowcount, "uploads": uploads.rowcount}


def _keep_rejected(folder: Path, kept: Callable[[Row], Row | None]) -> None:
    """Rewrite the rows that the database rejected as what is kept of them."""
    file, unfinished = folder / "rejected.jsonl", folder / ".rejected.jsonl"
    if not file.exists():
        return
    with FileLock(folder / "lock"):
        unfinished.unlink(missing_ok=True)
        journal = Journal(unfinished)
        for row in read_journal(file).rows:
            if (rest := kept(row)) is not None:
                journal.append(rest)
        journal.close()
        unfinished.replace(file)


def _aged(row: Row, *, hot: datetime, warm: datetime) -> Row | None:
    at = datetime.fromisoformat(str(row["at"]))
    return None if at < warm else {**row, "prompts": None} if at < hot else row


@asynccontextmanager
async def _trial(engine: AsyncEngine, dry_run: bool) -> AsyncIterator[AsyncConnection]:
    """A transaction, which a dry run rolls back."""
    async with engine.execution_options(immediate=True).begin() as connection:
        yield connection
        if dry_run:
            await connection.rollback()


def row_of(context: RequestContext, status: int) -> dict[str, Any]:
    """The row of a response about to be sent with `status`; pure JSON, without values that a database rejects."""
    client, asked = context.client, context.asked
    of_a_call = ("stage", "model", "round", "cached", "latency_s", "cost_usd", "error")
    tokens = ("prompt_tokens", "completion_tokens")
    record = {
        "message": context.message,
        "source_mode": asked and asked.source_mode,
        "mode": asked and asked.mode,
        "corpus": context.corpus,
        "session": asked and asked.session,
        "degraded": context.degraded,
        "seconds": round(time.monotonic() - context.arrived, 3),
        "model_calls": [{name: getattr(call.row, name) for name in (*of_a_call, *tokens)} for call in context.calls],
        **({} if context.turn is None else _answer(context.turn)),
    }
    row = {
        "query_id": context.query_id,
        "at": context.at.isoformat(),
        "request_id": context.request_id,
        "client_id": client.id,
        "client_name": client.name,
        "endpoint": context.endpoint,
        "status": status,
        "success": status == 200 and context.error is None,
        "error": context.error,
        "question": "" if asked is None else asked.question,
        "cost_usd": _cost(context.calls),
        "record": record,
        "prompts": [
            {
                "messages": [{"role": one.role, "content": one.content} for one in call.request.messages],
                "reply": call.outcome.text if isinstance(call.outcome, Reply) else None,
            }
            for call in context.calls
        ],
    }
    return _storable(row)


def _answer(turn: Turn) -> dict[str, Any]:
    """The fields of the answer, and what it rests on."""
    fields, reply, evidence = reply_fields(turn), turn.reply, tuple[Found, ...]()
    if isinstance(reply, CoachReply):
        fields["coach_success"] = fields.pop("success")
        fields["checks"] = {"violations": reply.trace.violations}
        evidence = reply.trace.evidence
    if isinstance(reply, DocumentsReply):
        result, evidence = reply.grounded, reply.grounded.answer.evidence
        rounds = result.answer.rounds
        planned = [query for one in rounds if one.plan is not None for query in one.plan.queries]
        fields["queries"] = [turn.reading.standalone, *planned, *(query for one in rounds for query in one.searches)]
        fields["checks"] = {
            "quotes": result.quotes,
            "claims": [{"text": claim.text, **asdict(support)} for claim, support in result.claims],
        }
    fields["passages"] = [
        {"id": one.passage.id, "doc_id": one.passage.doc_id, "score": one.score, "via": one.via} for one in evidence
    ]
    return fields


def as_json(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of the table as one flat record, its time as text in UTC."""
    head = {name: value for name, value in row.items() if name != "record"}
    return {**head, **row["record"], "at": row["at"].isoformat()}


def _cost(calls: Sequence[ModelCall]) -> float | None:
    """What was paid in USD; if a call's bill is unknown, its maximum counts. `None` if a price is unknown."""
    spent = Decimal(0)
    for call in (one.row for one in calls if one.row.provider != EMBEDDED):
        cost = call.paid_usd if call.cached or call.cost_usd is None else call.cost_usd
        if cost is None and call.error is None:
            return None
        spent += cost or 0
    return float(spent)


def _storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as pure JSON, without null bytes and lone surrogates; numbers that are not finite become `None`."""

    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, Decimal) else asdict(value)

    text = encodable(json.dumps(row, default=plain, ensure_ascii=False))
    text = _NULL.sub(lambda match: match[1] + "\ufffd", text)
    found: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return found
