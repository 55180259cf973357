"""`marag audit tail|export`: what the service answered."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Assignments, Debug, Json, console, plain, print_json, reporting, run, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(help="The records of what the service answered.", no_args_is_help=True)
    group.command("tail")(tail)
    group.command("export")(export)
    app.add_typer(group, name="audit")


@reporting
def tail(
    n: Annotated[int, typer.Option("--n", min=1, help="How many records.")] = 20,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Show the latest records, the newest last."""
    from ..settings import Settings

    rows = run(_latest(Settings.load(set_ or ()), n))
    if json_:
        print_json(rows)
        return
    if not rows:
        say("There are no records yet.")
    for row in rows:
        console().print(plain(_line(row)))


@reporting
def export(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A JSONL file that is not there yet.")],
    since: Annotated[str | None, typer.Option(help="From this moment on, as 2026-01-31 or 2026-01-31T12:00Z.")] = None,
    client: Annotated[str | None, typer.Option(help="Of this key alone, by its id.")] = None,
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Write records into a file, one JSON object a line, the oldest first."""
    from ..service.audit.reading import moment
    from ..settings import Settings

    begin = None if since is None else moment(since)
    count = run(_exported(Settings.load(set_ or ()), path, begin, client))
    if json_:
        print_json({"file": path, "records": count})
    else:
        say(f"Wrote {count} records into {str(path)!r}.")


async def _latest(settings: "Settings", n: int) -> list[dict[str, Any]]:
    from ..service.audit.reading import latest
    from ..service.database import open_database

    async with open_database(settings) as database:
        return await latest(database, n)


async def _exported(settings: "Settings", path: Path, since: Any, client: str | None) -> int:
    from ..service.audit.reading import export as write
    from ..service.database import open_database

    async with open_database(settings) as database:
        return await write(database, path, since=since, client_id=client)


def _line(row: "Mapping[str, Any]") -> str:
    cost = "" if row["cost_usd"] is None else f", {row['cost_usd']:.6f} USD"
    outcome = row["error"] or row["refused"] or row["short_answer"] or "answered"
    return f"{row['at'][:19]}  {row['status']}  {row['client_name']}: {row['question'][:80]}  ->  {outcome}{cost}"
