"""`marag audit tail|export|prune|forget`: the service's records, and their retention."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..errors import InputError
from ..wording import counted, printable
from .shared.command import Assignments, Json, command, group, keep_private, plain, run, settings_of, show

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from ..settings import Settings

T = TypeVar("T")
Yes = Annotated[bool, typer.Option("--yes", help="Make the changes; without this option, only report them.")]
_UNCHANGED = "Nothing was changed; add --yes to do it."
_AUDIT = group("audit", "The audit records of the service.")


@command(_AUDIT)
def tail(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of records.")] = 20,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Show the latest records, newest last."""
    from ..service.audit import selected

    rows = run(_in_database(settings_of(set_), lambda database: selected(database, latest=n)))
    show(rows, *([plain(_line(row)) for row in rows] or ["No records yet."]), json_=json_)


@command(_AUDIT)
def export(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A JSONL file that does not exist yet.")],
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only records since 2026-01-31, or 2026-01-31T12:00 (UTC).")
    ] = None,
    client: Annotated[str | None, typer.Option(help="Only records of this key, by its id.")] = None,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Write records to a file, one JSON object per line, oldest first."""
    from ..service.audit import export as exported
    from ..service.database import AUDIT

    keep_private()
    conditions = [] if since is None else [AUDIT.c.at >= _time(since)]
    settings = settings_of(set_)
    count = run(_in_database(settings, lambda database: exported(database, path, *conditions, client_id=client)))
    said = f"Wrote {counted(count, 'record')} into {str(path)!r}."
    show({"file": path, "records": count}, plain(said), json_=json_)


@command(_AUDIT)
def prune(yes: Yes = False, set_: Assignments = None, json_: Json = False) -> None:
    """Remove prompts and raw replies after AUDIT_HOT_DAYS, with sessions unused for as long.

    After AUDIT_WARM_DAYS, remove the records, too; `marag audit export` keeps them.
    """
    from ..service.audit import prune as pruned

    settings, now = settings_of(set_), datetime.now(UTC)
    result = run(_in_database(settings, lambda database: pruned(database, settings, now, dry_run=not yes)))
    verb = "Removed" if yes else "Would be removed"
    slimmed, expired = (counted(result[name], "record") for name in ("slimmed", "expired"))
    said = f"{verb}: prompts and replies of {slimmed}, {expired}, {counted(result['sessions'], 'session')}."
    show({**result, "done": yes}, said, *([] if yes else [_UNCHANGED]), json_=json_)


@command(_AUDIT)
def forget(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of a revoked or expired key.")],
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Delete everything recorded about a client: its records, its sessions, and states and files of its uploads."""
    from ..service.audit import forget as forgotten

    settings = settings_of(set_)
    found = run(_in_database(settings, lambda database: forgotten(database, settings, client, dry_run=not yes)))
    verb = "Deleted" if yes else "Would be deleted"
    said = f"{verb}: {counted(found['records'], 'record')} and {counted(found['uploads'], 'upload')} of {client!r}."
    show({"client": client, **found, "done": yes}, plain(said), *([] if yes else [_UNCHANGED]), json_=json_)


def _time(text: str) -> datetime:
    """A time in UTC unless it says another zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since {text!r} is no time; write 2026-01-31, or 2026-01-31T12:00.") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


async def _in_database(settings: "Settings", work: "Callable[[AsyncEngine], Awaitable[T]]") -> T:
    from ..service.database import open_database

    async with open_database(settings) as database:
        return await work(database)


def _line(row: dict[str, Any]) -> str:
    cost = "" if row["cost_usd"] is None else f", {row['cost_usd']:.6f} USD"
    outcome = row.get("refused") or row.get("short_answer") or "answered"
    if row["error"]:
        outcome = f"{row['error']}: {printable(row['message'])}"
    who = f"{row['at'][:19]}  {row['status']}  {row['mode'] or '-':8}  {row['client_name']}"
    return f"{who}: {row['question'][:80]}  ->  {outcome}{cost}"
