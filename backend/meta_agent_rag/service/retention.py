"""What the operator does with audit records: show, export, prune by age, and forget one client."""

import asyncio
import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, cast

from sqlalchemy import ColumnElement, delete, func, null, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from ..chat.store import open_sessions
from ..errors import InputError, SettingsError
from ..settings import Settings
from .access import open_keys
from .audit import as_json, unstorable, waiting_lock
from .database import AUDIT, SESSIONS, UPLOADS, in_utc
from .request import new_id

_BATCH = 500
_EXPIRED = re.compile(r"audit-until-.*\.jsonl\.gz")


async def latest(engine: AsyncEngine, count: int) -> list[dict[str, Any]]:
    """The latest records, the newest last."""
    newest = select(AUDIT).order_by(AUDIT.c.at.desc(), AUDIT.c.query_id.desc()).limit(count)
    async with engine.connect() as connection:
        rows = (await connection.execute(newest)).all()
    return [as_json(dict(row._mapping)) for row in reversed(rows)]


async def export(engine: AsyncEngine, path: Path, *conditions: ColumnElement[bool]) -> int:
    """Write records into a new JSONL file (compressed if its name ends in .gz), oldest first; returns their number.

    The file is named once it is complete and on disk. Raises `InputError` if it exists.
    """
    if await asyncio.to_thread(path.exists):
        raise InputError(f"{str(path)!r} already exists; name a new file.")
    count = 0
    query = select(AUDIT).where(*conditions).order_by(AUDIT.c.at, AUDIT.c.query_id)
    part = path.with_name(f".{path.name}.part")
    try:
        with _opened(part, "wb", gzipped=path.suffix == ".gz") as file:
            async with engine.connect() as connection, connection.stream(query) as rows:
                async for row in rows:
                    file.write(json.dumps(as_json(dict(row._mapping)), ensure_ascii=False).encode() + b"\n")
                    count += 1
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    return count


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """The number of records that lose their prompts, of those that leave the database (into `file`), and of sessions.

    If not `done`, nothing has been changed.
    """

    slimmed: int
    expired: int
    sessions: int
    file: Path | None = None
    done: bool = True


async def prune(engine: AsyncEngine, settings: Settings, now: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove prompts and replies after AUDIT_HOT_DAYS, with sessions unused for as long; move records to a file after
    AUDIT_WARM_DAYS.

    Records leave the database once the file is on disk; after a kill, the next run may write them once more.
    Raises `SettingsError`, `SQLAlchemyError`, `StorageError`.
    """
    if settings.audit_warm_days < settings.audit_hot_days:
        words = f"AUDIT_WARM_DAYS ({settings.audit_warm_days!r}) cannot be less than AUDIT_HOT_DAYS "
        raise SettingsError(f"{words}({settings.audit_hot_days!r}); raise it.")
    hot, warm = (now - timedelta(days=days) for days in (settings.audit_hot_days, settings.audit_warm_days))
    whole, expired = (AUDIT.c.at < hot) & AUDIT.c.prompts.is_not(null()), AUDIT.c.at < warm
    slimmed, gone = await _count(engine, whole), await _count(engine, expired)
    async with open_sessions(settings.marag_data_dir / SESSIONS) as sessions:
        unused = await sessions.names(before=hot)
        if dry_run:
            return Pruned(slimmed=slimmed, expired=gone, sessions=len(unused), done=False)
        for name in unused:
            await sessions.drop(name)
    await _in_batches(engine, whole, lambda ids: update(AUDIT).where(ids).values(prompts=null()))
    file = None
    if gone:
        file = settings.marag_data_dir / "audit" / f"audit-until-{warm:%Y-%m-%dT%H%M%S}-{new_id()[-6:]}.jsonl.gz"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            await export(engine, file, expired)
        except OSError as error:
            raise unstorable(file, error) from None
        await _in_batches(engine, expired, delete(AUDIT).where)
    return Pruned(slimmed=slimmed, expired=gone, sessions=len(unused), file=file)


async def forget(engine: AsyncEngine, settings: Settings, client_id: str, *, dry_run: bool) -> dict[str, int]:
    """Delete everything recorded about a client: in the database, in files, its sessions and its uploads' states.

    Returns the number of records by place; what is indexed stays in its corpus. Raises `InputError` if its key is
    still valid.
    """
    data_dir = settings.marag_data_dir
    files = [one for one in (data_dir / "audit").glob("*.jsonl*") if one.suffix == ".jsonl" or _EXPIRED.match(one.name)]
    async with engine.connect() as connection:
        own = select(UPLOADS.c.id).where(UPLOADS.c.client_id == client_id)
        uploads = (await connection.execute(own)).scalars().all()
    found = {
        "database": await _count(engine, AUDIT.c.client_id == client_id),
        "files": sum([await asyncio.to_thread(_without, file, client_id, write=False) for file in files]),
        "uploads": len(uploads),
    }
    if dry_run:
        return found
    if any(key.id == client_id and key.state == "valid" for key in await open_keys(engine, settings).all()):
        words = f"The key {client_id!r} is still valid; revoke it first: `marag keys revoke {client_id}`."
        raise InputError(words)
    await _in_batches(engine, AUDIT.c.client_id == client_id, delete(AUDIT).where)
    if files:
        with waiting_lock(data_dir / "audit"):
            for file in files:
                await asyncio.to_thread(_without, file, client_id, write=True)
    async with engine.begin() as connection:
        await connection.execute(delete(UPLOADS).where(UPLOADS.c.client_id == client_id))
    for id_ in uploads:
        await asyncio.to_thread(shutil.rmtree, data_dir / "uploads" / id_, ignore_errors=True)
    async with open_sessions(data_dir / SESSIONS) as sessions:
        for name in await sessions.names():
            if name.startswith(f"{client_id}."):
                await sessions.drop(name)
    return found


def moment(text: str) -> datetime:
    """Parse a time given by a user, in UTC if no zone is given. Raises `InputError`."""
    try:
        return in_utc(datetime.fromisoformat(text)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a date or time; write it as 2026-01-31 or 2026-01-31T12:00Z.") from None


def _without(path: Path, client_id: str, *, write: bool) -> int:
    """The number of a client's records in a file, which are removed from it if `write`."""
    gzipped = path.suffix == ".gz"
    try:
        with _opened(path, "rb", gzipped=gzipped) as file:
            lines = [line for line in file if line.strip()]
    except FileNotFoundError:  # inserted meanwhile
        return 0
    kept = [line for line in lines if _client_of(line) != client_id]
    if write and len(kept) < len(lines):
        part = path.with_name(f".{path.name}.part")
        with _opened(part, "wb", gzipped=gzipped) as file:
            file.writelines(kept)
        part.replace(path)
    return len(lines) - len(kept)


def _client_of(line: bytes) -> str:
    try:
        return str(json.loads(line).get("client_id"))
    except ValueError:  # torn by a kill
        return ""


def _opened(path: Path, mode: str, *, gzipped: bool) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, mode) if gzipped else path.open(mode))


async def _count(engine: AsyncEngine, condition: ColumnElement[bool]) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(select(func.count()).select_from(AUDIT).where(condition))).scalar_one())


async def _in_batches(
    engine: AsyncEngine, condition: ColumnElement[bool], statement: Callable[[ColumnElement[bool]], Any]
) -> None:
    """Change all rows of a condition, a few at a time, so that a running service waits only briefly."""
    some = select(AUDIT.c.query_id).where(condition).order_by(AUDIT.c.at).limit(_BATCH)
    while True:
        async with engine.execution_options(immediate=True).begin() as connection:
            ids = (await connection.execute(some)).scalars().all()
            if not ids:
                return
            await connection.execute(statement(AUDIT.c.query_id.in_(ids)))
        await asyncio.sleep(0.01)
