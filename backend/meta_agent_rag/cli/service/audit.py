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
    from ...service.retention import latest

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
    from ...service import retention
    from ...service.database import AUDIT

    keep_private()
    conditions = [] if since is None else [AUDIT.c.at >= retention.moment(since)]
    conditions += [] if client is None else [AUDIT.c.client_id == client]
    count = run(_in_database(settings_of(set_), lambda database: retention.export(database, path, *conditions)))
    if json_:
        print_json({"file": path, "records": count})
    else:
        say(f"Wrote {counted(count, 'record')} into {str(path)!r}.")


@reporting
def prune(yes: Yes = False, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Remove prompts and raw replies after AUDIT_HOT_DAYS, with sessions unused for as long.

    After AUDIT_WARM_DAYS, records move from the database to a compressed file in `audit/` of the data folder.
    """
    from ...service.retention import prune as pruned

    keep_private()
    settings, now = settings_of(set_), datetime.now(UTC)
    result = vars(run(_in_database(settings, lambda database: pruned(database, settings, now, dry_run=not yes))))
    if json_:
        print_json(result)
        return
    verb = "were" if yes else "would be"
    hot, warm = counted(settings.audit_hot_days, "day"), counted(settings.audit_warm_days, "day")
    say(f"Prompts and raw replies of {counted(result['slimmed'], 'record')} older than {hot} {verb} removed.")
    say(f"Sessions unused for {hot} that {verb} deleted: {result['sessions']}.")
    where = f" to {str(result['file'])!r}" if result["file"] else ""
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
    from ...service.retention import forget as forgotten

    settings = settings_of(set_)
    found = run(_in_database(settings, lambda database: forgotten(database, settings, client, dry_run=not yes)))
    if json_:
        print_json({"client": client, "records": sum(found.values()), **found, "done": yes})
        return
    verb = "were" if yes else "would be"
    say(
        f"Records of {client!r} that {verb} deleted: {found['database']} from the database, "
        f"{found['files']} from files and {found['uploads']} of uploads."
    )
    _say_how(yes)


def _say_how(yes: bool) -> None:
    if not yes:
        say("Nothing was changed; add --yes to do it.")


async def _in_database(settings: "Settings", work: "Callable[[AsyncEngine], Awaitable[T]]") -> T:
    from ...service.database import open_database

    async with open_database(settings) as database:
        return await work(database)


def _line(row: dict[str, Any]) -> str:
    cost = "" if row["cost_usd"] is None else f", {row['cost_usd']:.6f} USD"
    outcome = row["refused"] or row["short_answer"] or "answered"
    if row["error"]:
        outcome = f"{row['error']}: {printable(row['message'])}"
    who = f"{row['at'][:19]}  {row['status']}  {row['mode'] or '-':8}  {row['client_name']}"
    return f"{who}: {row['question'][:80]}  ->  {outcome}{cost}"
