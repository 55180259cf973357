"""`marag audit tail|export|prune|forget`: the service's records, and their retention."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ...errors import InputError
from ...wording import counted, printable
from ..shared.command import (
    Assignments,
    Debug,
    Json,
    add_group,
    console,
    keep_private,
    plain,
    print_json,
    reporting,
    run,
    say,
    settings_of,
)

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from ...settings import Settings

T = TypeVar("T")
Yes = Annotated[bool, typer.Option("--yes", help="Make the changes; without this option, only report them.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_group(app, "audit", "The audit records of the service.", tail, export, prune, forget)


@reporting
def tail(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of records.")] = 20,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Show the latest records, newest last."""
    from ...service.audit import latest

    rows = run(_in_database(settings_of(set_), lambda database: latest(database, n)))
    if json_:
        print_json(rows)
        return
    if not rows:
        say("No records yet.")
    for row in rows:
        console().print(plain(_line(row)))


@reporting
def export(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A JSONL file that does not exist yet; .jsonl.gz is compressed.")
    ],
    since: Annotated[
        str | None, typer.Option(help="Only records since this time, as 2026-01-31 or 2026-01-31T12:00Z.")
    ] = None,
    client: Annotated[str | None, typer.Option(help="Only records of this key, by its id.")] = None,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Write records to a file, one JSON object per line, oldest first."""
    from ...service import audit
    from ...service.database import AUDIT

    keep_private()
    conditions = [] if since is None else [AUDIT.c.at >= audit.moment(since)]
    conditions += [] if client is None else [AUDIT.c.client_id == client]
    count = run(_in_database(settings_of(set_), lambda database: audit.export(database, path, *conditions)))
    if json_:
        print_json({"file": path, "records": count})
    else:
        say(f"Wrote {counted(count, 'record')} into {str(path)!r}.")


@reporting
def prune(yes: Yes = False, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Remove prompts and raw replies after AUDIT_HOT_DAYS, with sessions unused for as long.

    After AUDIT_WARM_DAYS, records move from the database to a compressed file in `audit/` of the data folder.
    """
    keep_private()
    settings = settings_of(set_)
    result = run(_pruned(settings, yes))
    if json_:
        print_json(result)
        return
    verb = "were" if yes else "would be"
    hot, warm = counted(settings.audit_hot_days, "day"), counted(settings.audit_warm_days, "day")
    say(f"Prompts and raw replies of {counted(result['slimmed'], 'record')} older than {hot} {verb} removed.")
    say(f"Sessions unused for {hot} that {verb} deleted: {result['sessions']}.")
    where = f" to {result['file']!r}" if result["file"] else ""
    say(f"Records older than {warm} that {verb} moved out of the database{where}: {result['expired']}.")
    _say_how(yes)


@reporting
def forget(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of a revoked or expired key.")],
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Delete everything recorded about a client: in the database, in files, its sessions and its uploads' states."""
    if not client.strip():
        raise InputError("The client's id is empty; `marag keys list` shows the ids.")
    result = run(_forgotten(settings_of(set_), client, yes))
    if json_:
        print_json(result)
        return
    verb = "were" if yes else "would be"
    say(
        f"Records of {client!r} that {verb} deleted: {result['database']} from the database, "
        f"{result['files']} from files and {result['uploads']} of uploads."
    )
    _say_how(yes)


def _say_how(yes: bool) -> None:
    if not yes:
        say("Nothing was changed; add --yes to do it.")


async def _in_database(settings: "Settings", work: "Callable[[AsyncEngine], Awaitable[T]]") -> T:
    from ...service.database import open_database

    async with open_database(settings) as database:
        return await work(database)


async def _pruned(settings: "Settings", yes: bool) -> dict[str, Any]:
    from ...service.audit import Ages, prunable
    from ...service.audit import prune as work
    from ...service.client_sessions import unused_sessions

    ages, folder = Ages.of(settings, datetime.now(UTC)), settings.marag_data_dir / "audit"
    done = await _in_database(
        settings, lambda database: work(database, folder, ages) if yes else prunable(database, ages)
    )
    sessions = await unused_sessions(settings.marag_data_dir, ages.hot, drop=yes)
    return {**vars(done), "file": done.file and str(done.file), "sessions": sessions, "done": yes}


async def _forgotten(settings: "Settings", client: str, yes: bool) -> dict[str, Any]:
    from ...service.access import open_keys
    from ...service.audit import forget as work
    from ...service.audit import traces
    from ...service.client_sessions import forget_sessions
    from ...service.uploads import forget_uploads, uploads_of

    async def forgotten(database: "AsyncEngine") -> dict[str, Any]:
        data_dir = settings.marag_data_dir
        found = {**await traces(database, data_dir, client), "uploads": await uploads_of(database, client)}
        if yes:
            valid = [
                key for key in await open_keys(database, settings).all() if key.state(datetime.now(UTC)) == "valid"
            ]
            if any(key.id == client for key in valid):
                words = f"The key {client!r} is still valid; revoke it first: `marag keys revoke {client}`."
                raise InputError(words)
            await work(database, data_dir, client)
            await forget_uploads(database, data_dir, client)
            await forget_sessions(data_dir, client)
        return {"client": client, "records": sum(found.values()), **found, "done": yes}

    return await _in_database(settings, forgotten)


def _line(row: dict[str, Any]) -> str:
    from ...service.failures import refusal_note

    cost = "" if row["cost_usd"] is None else f", {row['cost_usd']:.6f} USD"
    outcome = row["error"] or row["refused"] or row["short_answer"] or "answered"
    if (note := refusal_note(row)) is not None:
        outcome = f"{outcome}: {printable(note)}"
    who = f"{row['at'][:19]}  {row['status']}  {row['mode'] or '-':8}  {row['client_name']}"
    return f"{who}: {row['question'][:80]}  ->  {outcome}{cost}"
