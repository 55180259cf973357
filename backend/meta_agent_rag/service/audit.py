"""The audit log: one row for each response, stored before it is sent; its export and its retention.

Responses wait in one queue for their rows to be inserted together. While the database is unavailable, rows go to
`<data_dir>/audit/waiting.jsonl` and are inserted later; a row that is inserted twice is kept once, by its query id.
"""

import asyncio
import glob
import gzip
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast

from filelock import FileLock
from sqlalchemy import ColumnElement, delete, func, null, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.ext.asyncio import AsyncEngine

from ..chat.coach.coach import CoachReply
from ..chat.history import HINT
from ..errors import InputError, SettingsError, StorageError
from ..journal import Journal, read_journal
from ..llm.ledger import total
from ..llm.messages import Reply
from ..retrieval.passage import Found
from ..settings import Settings
from ..text.normalise import encodable
from .database import AUDIT, in_utc, require_writable, within
from .request_record import ModelCall, RequestRecord, SmallTalk, Summarised, new_id

_LOG = logging.getLogger(__name__)
_BATCH = 500
_INSERT_SECONDS = 1.0
_LAST_SECONDS = 1.5
_RETRY_SECONDS = 2.0
_EXPIRED = re.compile(r"audit-until-.*\.jsonl\.gz")
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
                        stored.set_exception(_unstorable(self.file, error))
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
            with _locked(self.file), suppress(FileNotFoundError):  # another process was faster
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


def _append(file: Path, rows: Sequence[Row]) -> None:
    """Append rows to a file that other processes write and empty, too. Raises `StorageError`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _locked(file):
        journal = Journal(file)
        try:
            for row in rows:
                journal.append(row)
        finally:
            journal.close()


def _locked(file: Path) -> FileLock:
    return FileLock(file.with_suffix(".lock"), thread_local=False)


def _unstorable(file: Path, error: Exception) -> StorageError:
    if isinstance(error, StorageError):
        return error
    return StorageError(f"{str(file)!r} cannot be written ({error}); free disk space, or set MARAG_DATA_DIR.")


def row_of(record: RequestRecord, status: int) -> dict[str, Any]:
    """The row of a response about to be sent with `status`; pure JSON, without values that a database rejects."""
    client, totals = record.known_client, total(call.row for call in record.calls)
    row = {
        "query_id": record.query_id,
        "at": record.at.isoformat(),
        "answer_id": record.answer_id,
        "request_id": record.request_id,
        "client_id": "" if client is None else client.id,
        "client_name": "" if client is None else client.name,
        "endpoint": record.endpoint[:64],
        "status": status,
        "success": status == 200 and record.error is None,
        "error": record.error,
        "question": record.question,
        "cost_usd": _cost(record.calls),
        "record": {
            "message": record.message,
            "source_mode": record.source_mode,
            "mode": record.mode,
            "corpus": record.corpus,
            "session": record.session,
            "queries": record.queries,
            "degraded": record.degraded,
            "dropped": [asdict(gone) for gone in record.dropped],
            "seconds": record.seconds,
            "model_calls": [_call(call) for call in record.calls],
            "prompt_tokens": totals.prompt_tokens,
            "cache_hit_tokens": totals.cache_hit_tokens,
            "completion_tokens": totals.completion_tokens,
            **_NOTHING,
            **_answer(record),
        },
        "prompts": [_prompt(call) for call in record.calls],
    }
    return cast("dict[str, Any]", _storable(row))


def as_json(row: Row) -> dict[str, Any]:
    """A row of the table as one flat record: its time as text in UTC, each model call with its messages and reply."""
    record = dict(row["record"])
    prompts = row["prompts"] or [{}] * len(record["model_calls"])
    record["model_calls"] = [call | kept for call, kept in zip(record["model_calls"], prompts, strict=True)]
    head = {name: value for name, value in row.items() if name not in {"record", "prompts"}}
    return {**head, "at": in_utc(row["at"]).isoformat(), **record}


_NOTHING: Mapping[str, Any] = {
    "passages": [],
    "answer": None,
    "short_answer": None,
    "refused": None,
    "stop_reason": None,
    "rounds": 0,
    "confidence": None,
    "level": None,
    "citations": [],
    "checks": {},
    "coach_success": None,
    "hint": None,
    "topic": None,
}


def _answer(record: RequestRecord) -> dict[str, Any]:
    """The fields of the answer, none if there was none."""
    result = record.result
    if result is None:
        return {}
    if isinstance(result, SmallTalk):
        return {"answer": result.text, "stop_reason": result.intent}
    if isinstance(result, Summarised):
        return _summary(result)
    if isinstance(result, CoachReply):
        return {
            "passages": [_passage(found) for found in result.trace.evidence],
            "answer": result.text,
            "refused": result.refused,
            "stop_reason": result.trace.outcome,
            "rounds": len(result.trace.attempts),
            "checks": {"violations": list(result.trace.violations)},
            "coach_success": result.acknowledged,
            "hint": result.kind == HINT,
            "topic": result.topic or None,
        }
    sure = result.confidence
    return {
        "passages": [_passage(found) for found in result.answer.evidence],
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "stop_reason": result.answer.stop_reason,
        "rounds": len(result.answer.rounds),
        "confidence": None if sure is None else sure.score,
        "level": None if sure is None else sure.level,
        "citations": [asdict(citation) for citation in result.citations],
        "checks": {
            "quotes": list(result.quotes),
            "leaks": list(result.leaks),
            "removed_citations": result.removed,
            "claims": [{"text": claim.text, **asdict(support)} for claim, support in result.claims],
        },
    }


def _summary(result: Summarised) -> dict[str, Any]:
    """The fields of a summary; of a dry run, only the stop reason."""
    if result.summary is None:
        return {"stop_reason": result.stop_reason}
    overviews = result.summary.overviews
    parts = [part for one in result.work.documents for part in one.sections]
    return {
        "passages": [_passage(found) for part in parts for found in part],
        "answer": result.text,
        "stop_reason": result.stop_reason,
        "citations": [asdict(citation) for citation in result.summary.citations],
        "checks": {
            "invented": sum(section.invented for one in overviews for section in one.sections),
            "left_out": sum(one.left_out for one in overviews),
        },
    }


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


@dataclass(frozen=True, kw_only=True)
class Ages:
    """Times before which records lose their prompts (`hot`), or leave the database (`warm`)."""

    hot: datetime
    warm: datetime

    @classmethod
    def of(cls, settings: Settings, now: datetime) -> "Ages":
        """The ages in the settings. Raises `SettingsError`."""
        if settings.audit_warm_days < settings.audit_hot_days:
            raise SettingsError(
                f"AUDIT_WARM_DAYS ({settings.audit_warm_days!r}) cannot be less than AUDIT_HOT_DAYS "
                f"({settings.audit_hot_days!r}); raise it."
            )
        return cls(
            hot=now - timedelta(days=settings.audit_hot_days), warm=now - timedelta(days=settings.audit_warm_days)
        )


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """The number of records that lose or lost their prompts, and that leave or left the database, into `file`."""

    slimmed: int
    expired: int
    file: Path | None = None


async def prunable(engine: AsyncEngine, ages: Ages) -> Pruned:
    """What `prune` would do."""
    return Pruned(slimmed=await _count(engine, _hot(ages)), expired=await _count(engine, AUDIT.c.at < ages.warm))


async def prune(engine: AsyncEngine, folder: Path, ages: Ages) -> Pruned:
    """Remove prompts and replies from records that are no longer hot; move those no longer warm to a file in `folder`.

    Records leave the database once the file is on disk; after a kill, the next run may write them once more.
    Raises `SQLAlchemyError`, `StorageError`.
    """
    slimmed = await _in_batches(engine, _hot(ages), lambda ids: update(AUDIT).where(ids).values(prompts=null()))
    expired = AUDIT.c.at < ages.warm
    if not await _count(engine, expired):
        return Pruned(slimmed=slimmed, expired=0)
    file = folder / f"audit-until-{ages.warm:%Y-%m-%dT%H%M%S}-{new_id()[-6:]}.jsonl.gz"
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        await export(engine, file, expired)
    except OSError as error:
        raise _unstorable(file, error) from None
    return Pruned(slimmed=slimmed, expired=await _in_batches(engine, expired, delete(AUDIT).where), file=file)


async def latest(engine: AsyncEngine, count: int) -> list[dict[str, Any]]:
    """The latest records, the newest last."""
    newest = select(AUDIT).order_by(AUDIT.c.at.desc(), AUDIT.c.query_id.desc()).limit(count)
    async with engine.connect() as connection:
        rows = (await connection.execute(newest)).all()
    return [as_json(dict(row._mapping)) for row in reversed(rows)]


async def export(engine: AsyncEngine, path: Path, *conditions: ColumnElement[bool]) -> int:
    """Write records into a new JSONL file (compressed if its name ends in .gz), oldest first; returns their number.

    Raises `InputError` if the file exists.
    """
    count = 0
    query = select(AUDIT).where(*conditions).order_by(AUDIT.c.at, AUDIT.c.query_id)
    with _new(path) as file:
        async with engine.connect() as connection, connection.stream(query) as rows:
            async for row in rows:
                file.write(json.dumps(as_json(dict(row._mapping)), ensure_ascii=False).encode() + b"\n")
                count += 1
    return count


async def traces(engine: AsyncEngine, data_dir: Path, client_id: str) -> dict[str, int]:
    """The number of a client's records, by place."""
    folder = data_dir / "audit"
    return {
        "database": await _count(engine, AUDIT.c.client_id == client_id),
        "files": sum([await asyncio.to_thread(_without, file, client_id, write=False) for file in _files(folder)]),
    }


async def forget(engine: AsyncEngine, data_dir: Path, client_id: str) -> None:
    """Delete a client's records in the database and on this machine. Raises `SQLAlchemyError`, `OSError`."""
    await _in_batches(engine, AUDIT.c.client_id == client_id, delete(AUDIT).where)
    for file in _files(data_dir / "audit"):
        with _locked(file):
            await asyncio.to_thread(_without, file, client_id, write=True)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.glob("*.jsonl*") if file.suffix == ".jsonl" or _EXPIRED.fullmatch(file.name)]


def _without(path: Path, client_id: str, *, write: bool) -> int:
    """The number of a client's records in a file, which are removed from it if `write`."""
    with _opened(path, "rb") as file:
        lines = [line for line in file if line.strip()]
    kept = [line for line in lines if _client_of(line) != client_id]
    if write and len(kept) < len(lines):
        part = path.with_name(f".{path.name}.part")
        with _opened(part, "wb", gzipped=path.suffix == ".gz") as file:
            file.writelines(kept)
        part.replace(path)
    return len(lines) - len(kept)


def _client_of(line: bytes) -> str:
    try:
        return str(json.loads(line).get("client_id"))
    except ValueError:  # torn by a kill
        return ""


async def _count(engine: AsyncEngine, condition: ColumnElement[bool]) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(select(func.count()).select_from(AUDIT).where(condition))).scalar_one())


def _hot(ages: Ages) -> ColumnElement[bool]:
    return (AUDIT.c.at < ages.hot) & AUDIT.c.prompts.is_not(null())


async def _in_batches(
    engine: AsyncEngine, condition: ColumnElement[bool], statement: Callable[[ColumnElement[bool]], Any]
) -> int:
    """Change all rows of a condition, a few at a time, so that a running service waits only briefly."""
    changed = 0
    some = select(AUDIT.c.query_id).where(condition).order_by(AUDIT.c.at).limit(_BATCH)
    while True:
        async with engine.execution_options(immediate=True).begin() as connection:
            ids = (await connection.execute(some)).scalars().all()
            if not ids:
                return changed
            await connection.execute(statement(AUDIT.c.query_id.in_(ids)))
        changed += len(ids)
        await asyncio.sleep(0.01)


@contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    """A new file that is named once complete and on disk: a partial one would look complete. Raises `InputError`."""
    if path.exists():
        raise InputError(f"{str(path)!r} already exists; name a new file.")
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        left.unlink(missing_ok=True)  # from a killed run
    part = path.with_name(f".{path.name}.{new_id()}.part")
    try:
        with _opened(part, "xb", gzipped=path.suffix == ".gz") as file:
            yield file
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


def _opened(path: Path, mode: str, *, gzipped: bool | None = None) -> IO[bytes]:
    compressed = path.suffix == ".gz" if gzipped is None else gzipped
    return cast("IO[bytes]", gzip.open(path, mode) if compressed else path.open(mode))


def moment(text: str) -> datetime:
    """Parse a time given by a user, in UTC if no zone is given. Raises `InputError`."""
    try:
        return in_utc(datetime.fromisoformat(text)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a date or time; write it as 2026-01-31 or 2026-01-31T12:00Z.") from None
