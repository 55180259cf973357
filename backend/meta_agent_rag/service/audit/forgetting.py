"""Deletion on request: all records of one client, wherever they are stored."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import InputError, StorageError
from ...journal import Journal, read_journal
from ...settings import Settings
from ..access.keys import open_keys
from ..answering.sessions import forget_sessions
from ..storage.database import in_utc, is_postgresql
from ..storage.tables import AUDIT
from ..uploads.records import UploadFolder
from .archive import archives, read_archive, rewrite
from .log import REFUSED, open_audit
from .months import tables
from .retention import FOLDER, Done, among, complete, exclusive

_SPOOL_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Traces:
    """The number of records of a client, by place."""

    database: int
    archives: int
    spool: int
    uploads: int

    @property
    def total(self) -> int:
        """The sum of all places."""
        return self.database + self.archives + self.spool + self.uploads


async def traces(settings: Settings, engine: AsyncEngine, spool: Path, client_id: str) -> Traces:
    """The number of a client's records."""
    async with engine.connect() as connection:
        query = select(func.count()).select_from(AUDIT).where(AUDIT.c.client_id == client_id)
        kept = int((await connection.execute(query)).scalar_one())
    return Traces(
        database=kept,
        archives=await asyncio.to_thread(_in_archives, spool / FOLDER, client_id),
        spool=await asyncio.to_thread(_in_spool, spool, client_id),
        uploads=len(await asyncio.to_thread(UploadFolder.below(settings.marag_data_dir).of, client_id)),
    )


async def forget(settings: Settings, engine: AsyncEngine, spool: Path, client_id: str) -> Traces:
    """Delete them, with the client's sessions; returns what was found. Documents that it sent stay in their corpora.

    Raises `InputError` while the client's key is valid, `StorageError` if something cannot be deleted now; earlier
    deletions are kept, and the next run continues.
    """
    now = datetime.now(UTC)
    if any(key.id == client_id and key.state(now) == "valid" for key in await open_keys(engine, settings).all()):
        raise InputError(f"The key {client_id!r} is still valid; revoke it first: `marag keys revoke {client_id}`.")
    done = Done()
    async with exclusive(engine, spool / FOLDER):
        await complete(engine, spool / FOLDER, done)
        found = await traces(settings, engine, spool, client_id)
        async with open_audit(engine, spool):  # leftovers of ended processes go to the database
            await _spool_emptied(spool, client_id)
        await _deleted(engine, client_id, done)
        await _deleted_from_detached(engine, client_id)
        for path in archives(spool / FOLDER):
            await asyncio.to_thread(rewrite, path, lambda row: row["client_id"] != client_id)
        await asyncio.to_thread(_refused_cleared, spool / REFUSED, client_id)
    await forget_sessions(settings.marag_data_dir, client_id)
    await asyncio.to_thread(_uploads_forgotten, UploadFolder.below(settings.marag_data_dir), client_id)
    return found


async def _deleted_from_detached(engine: AsyncEngine, client_id: str) -> None:
    """Months that an interrupted `archive` has detached from the log but not yet written."""
    if not is_postgresql(engine):
        return
    async with engine.begin() as connection:
        for name in await tables(connection, attached=False):
            await connection.execute(text(f"DELETE FROM {name} WHERE client_id = :id"), {"id": client_id})


async def _deleted(engine: AsyncEngine, client_id: str, done: Done) -> None:
    query = select(AUDIT.c.at, AUDIT.c.query_id).where(AUDIT.c.client_id == client_id).order_by(AUDIT.c.at)
    while True:
        async with engine.connect() as connection:
            found = (await connection.execute(query.limit(done.portions.size))).all()
        if not found:
            return
        keys = [(in_utc(row.at), str(row.query_id)) for row in found]
        await done.portions.change(engine, [delete(AUDIT).where(among(keys))])


async def _spool_emptied(spool: Path, client_id: str) -> None:
    """Wait until running services have written their rows to the database, which takes a moment."""
    until = time.monotonic() + _SPOOL_SECONDS
    while await asyncio.to_thread(_in_waiting, spool, client_id):
        if time.monotonic() > until:
            raise StorageError(
                f"Records of {client_id!r} still wait in {str(spool)!r} for the database; run it again later."
            )
        await asyncio.sleep(0.1)


def _waiting(spool: Path) -> list[Path]:
    return [*spool.glob("slot-*/*.jsonl"), *spool.glob("waiting/*.jsonl")]


def _in_waiting(spool: Path, client_id: str) -> int:
    """The number of records in files that did not move meanwhile, so that a file in transit is not overlooked."""
    while True:
        files = _waiting(spool)
        with suppress(FileNotFoundError):
            count = sum(_in_file(file, client_id) for file in files)
            if files == _waiting(spool):
                return count


def _in_spool(spool: Path, client_id: str) -> int:
    return _in_waiting(spool, client_id) + _in_file(spool / REFUSED, client_id)


def _in_file(path: Path, client_id: str) -> int:
    return sum(row.get("client_id") == client_id for row in read_journal(path).rows)


def _in_archives(folder: Path, client_id: str) -> int:
    return sum(row["client_id"] == client_id for path in archives(folder) for row in read_archive(path))


def _uploads_forgotten(folder: UploadFolder, client_id: str) -> None:
    for upload in folder.of(client_id):
        folder.drop(upload)


def _refused_cleared(path: Path, client_id: str) -> None:
    """Keep only other clients' refused rows; the file is replaced atomically."""
    rows = read_journal(path).rows
    kept = [row for row in rows if row.get("client_id") != client_id]
    if len(kept) == len(rows):
        return
    rest = path.with_name(f"{path.name}.part")
    rest.unlink(missing_ok=True)
    journal = Journal(rest, durable=True)
    for row in kept:
        journal.append(row)
    journal.close()
    rest.replace(path)
