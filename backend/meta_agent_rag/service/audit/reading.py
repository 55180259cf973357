"""Reads the audit log from the database: the latest rows, or all of them into a file."""

import glob
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from ...errors import InputError
from ..request_record import new_id
from ..storage.database import in_utc
from ..storage.tables import AUDIT
from .rows import Row


async def latest(engine: AsyncEngine, count: int) -> list[dict[str, Any]]:
    """The latest rows, the newest last."""
    newest = select(AUDIT).order_by(AUDIT.c.at.desc(), AUDIT.c.query_id.desc()).limit(count)
    async with engine.connect() as connection:
        rows = (await connection.execute(newest)).all()
    return [as_json(dict(row._mapping)) for row in reversed(rows)]


async def export(engine: AsyncEngine, path: Path, *, since: datetime | None, client_id: str | None) -> int:
    """Write rows into a new JSONL file, oldest first, and return their number. Raises `InputError` if it exists."""
    count = 0
    with _new(path) as file:
        async for row in _rows(engine, since, client_id):
            file.write(json.dumps(as_json(row), ensure_ascii=False) + "\n")
            count += 1
    return count


@contextmanager
def _new(path: Path) -> Iterator[TextIO]:
    """A new file that is named once complete: a partial file would look complete and block the next run."""
    if path.exists():
        raise _taken(path)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        left.unlink(missing_ok=True)  # from a killed run
    part = path.with_name(f".{path.name}.{new_id()}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            yield file
        _name(part, path)
    finally:
        part.unlink(missing_ok=True)


def _name(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError:  # a file system without hard links
        if path.exists():
            raise _taken(path) from None
        part.rename(path)


def _taken(path: Path) -> InputError:
    return InputError(f"{str(path)!r} already exists; name a new file.")


async def _rows(engine: AsyncEngine, since: datetime | None, client_id: str | None) -> AsyncIterator[Row]:
    query = select(AUDIT).order_by(AUDIT.c.at, AUDIT.c.query_id)
    if since is not None:
        query = query.where(AUDIT.c.at >= since)
    if client_id is not None:
        query = query.where(AUDIT.c.client_id == client_id)
    async with engine.connect() as connection, connection.stream(query) as rows:
        async for row in rows:
            yield dict(row._mapping)


def as_json(row: Row) -> dict[str, Any]:
    """A row with its time as text, in UTC."""
    at = row["at"]
    return {**row, "at": at if isinstance(at, str) else in_utc(at).isoformat()}


def moment(text: str) -> datetime:
    """Parse a time given by a user, in UTC if no zone is given. Raises `InputError`."""
    try:
        return in_utc(datetime.fromisoformat(text)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a date or time; write it as 2026-01-31 or 2026-01-31T12:00Z.") from None
