"""`marag audit tail|export|read|prune|archive|forget`: the service's records, and their retention."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InputError
from ...wording import counted, printable
from ..shared.command import (
    Assignments,
    Debug,
    Json,
    add_group,
    as_json,
    console,
    keep_private,
    plain,
    print_json,
    reporting,
    run,
    say,
    settings_of,
)

Yes = Annotated[bool, typer.Option("--yes", help="Make the changes; without this option, only report them.")]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_group(app, "audit", "The audit records of the service.", tail, export, read, prune, archive, forget)


@reporting
def tail(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of records.")] = 20,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Show the latest records, newest last."""
    rows = run(_latest(settings_of(set_), n))
    if json_:
        print_json(rows)
        return
    if not rows:
        say("No records yet.")
    for row in rows:
        console().print(plain(_line(row)))


@reporting
def export(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A JSONL file that does not exist yet.")],
    since: Annotated[
        str | None, typer.Option(help="Only records since this time, as 2026-01-31 or 2026-01-31T12:00Z.")
    ] = None,
    client: Annotated[str | None, typer.Option(help="Only records of this key, by its id.")] = None,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Write records to a file, one JSON object per line, oldest first."""
    from ...service.audit.reading import moment

    keep_private()
    begin = None if since is None else moment(since)
    count = run(_exported(settings_of(set_), path, begin, client))
    if json_:
        print_json({"file": path, "records": count})
    else:
        say(f"Wrote {counted(count, 'record')} into {str(path)!r}.")


@reporting
def read(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `marag audit archive`.")],
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Show the records of an archive, oldest first; with --json complete, one JSON object per line."""
    from ...service.audit.archive import read_archive

    for row in read_archive(path):
        say(as_json(row) if json_ else printable(_line(row)))


@reporting
def prune(yes: Yes = False, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Remove prompts and raw replies from records older than AUDIT_HOT_DAYS, and sessions unused for as long."""
    settings = settings_of(set_)
    result = run(_pruned(settings, yes))
    if json_:
        print_json(result)
        return
    verb, age = "were" if yes else "would be", counted(settings.audit_hot_days, "day")
    records, sessions = counted(result["records"], "record"), counted(result["sessions"], "session")
    say(f"Prompts and raw replies {verb} removed from {records} older than {age}.")
    verb = ("was" if result["sessions"] == 1 else "were") if yes else "would be"
    say(f"{sessions} unused for {age} {verb} deleted.")
    _say_how(yes)


@reporting
def archive(yes: Yes = False, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Move records older than AUDIT_WARM_DAYS from the database to compressed files; also prunes."""
    settings = settings_of(set_)
    result = run(_archived(settings, yes))
    if json_:
        print_json(result)
        return
    age = counted(settings.audit_warm_days, "day")
    verb = ("was" if result["records"] == 1 else "were") if yes else "would be"
    say(
        f"{counted(result['records'], 'record')} older than {age} {verb} moved from the database to {result['into']!r}."
    )
    for path in result["files"]:
        say(path)
    _say_how(yes)


@reporting
def forget(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of a revoked or expired key.")],
    yes: Yes = False,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Delete everything recorded about a client: in the database, archives, spool, sessions and upload status."""
    if not client.strip():
        raise InputError("The client's id is empty; `marag keys list` shows the ids.")
    result = run(_forgotten(settings_of(set_), client, yes))
    if json_:
        print_json(result)
        return
    verb = ("was" if result["records"] == 1 else "were") if yes else "would be"
    say(
        f"{counted(result['records'], 'record')} of {client!r} {verb} deleted: {result['database']} from the database, "
        f"{result['archives']} from archives, {result['spool']} waiting on this machine "
        f"and {result['uploads']} of uploads."
    )
    _say_how(yes)


def _say_how(yes: bool) -> None:
    if not yes:
        say("Nothing was changed; add --yes to do it.")


async def _latest(settings: "Settings", n: int) -> list[dict[str, Any]]:
    from ...service.audit.reading import latest
    from ...service.storage.database import open_database

    async with open_database(settings) as database:
        return await latest(database, n)


async def _exported(settings: "Settings", path: Path, since: Any, client: str | None) -> int:
    from ...service.audit.reading import export as write
    from ...service.storage.database import open_database

    async with open_database(settings) as database:
        return await write(database, path, since=since, client_id=client)


async def _pruned(settings: "Settings", yes: bool) -> dict[str, Any]:
    from ...service.answering.sessions import unused_sessions
    from ...service.audit.retention import Ages, prunable
    from ...service.audit.retention import prune as work
    from ...service.storage.database import open_database

    ages = Ages.of(settings, datetime.now(UTC))
    async with open_database(settings) as database:
        records = (await work(database, ages)).records if yes else await prunable(database, ages)
    sessions = await unused_sessions(settings.marag_data_dir, ages.hot, drop=yes)
    return {"records": records, "sessions": sessions, "done": yes}


async def _archived(settings: "Settings", yes: bool) -> dict[str, Any]:
    from ...service.audit.retention import Ages, Done, archivable
    from ...service.audit.retention import archive as work
    from ...service.storage.database import open_database

    ages, folder = Ages.of(settings, datetime.now(UTC)), settings.marag_data_dir / "audit" / "archive"
    async with open_database(settings) as database:
        done = await work(database, folder, ages) if yes else Done(records=await archivable(database, ages))
    return {"records": done.records, "into": str(folder), "files": list(map(str, done.files)), "done": yes}


async def _forgotten(settings: "Settings", client: str, yes: bool) -> dict[str, Any]:
    from ...service.audit.forgetting import forget as work
    from ...service.audit.forgetting import traces
    from ...service.storage.database import open_database

    spool = settings.marag_data_dir / "audit"
    async with open_database(settings) as database:
        found = await (work(settings, database, spool, client) if yes else traces(settings, database, spool, client))
    return {"client": client, "records": found.total, **vars(found), "done": yes}


def _line(row: "Mapping[str, Any]") -> str:
    from ...service.audit.rows import refusal_note

    cost = "" if row["cost_usd"] is None else f", {row['cost_usd']:.6f} USD"
    outcome = row["error"] or row["refused"] or row["short_answer"] or "answered"
    if (message := refusal_note(row)) is not None:
        outcome = f"{outcome}: {printable(message)}"
    mode = row.get("mode") or "-"  # older archives have none
    who = f"{row['at'][:19]}  {row['status']}  {mode:8}  {row['client_name']}"
    return f"{who}: {row['question'][:80]}  ->  {outcome}{cost}"
