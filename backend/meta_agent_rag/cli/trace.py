"""`marag trace`: shows from a benchmark run's files how an answer was produced."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..journal import records
from .shared.command import Json, command, console, plain, print_json

if TYPE_CHECKING:
    from ..demo.run_files import Row


@command()
def trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its name in RESULTS.")],
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id or its beginning; default: list all.")
    ] = None,
    json_: Json = False,
) -> None:
    """Show how the loop answered a question of a benchmark run: draft, facts, vote, diagnosis, repairs, calls."""
    from ..demo.run_files import LOOP, ONE_PASS, open_folder
    from .shared.display import recorded_steps

    folder = run if run.exists() else Path("RESULTS") / run
    found = open_folder(folder)
    rows = [row for row in found.rows if row["method"] == LOOP]
    if not rows:
        raise InputError(f"The run {run.name!r} has no answers of {LOOP}; name a run that includes it.")
    screen = console()
    if question is None:
        if json_:
            return print_json(
                [{name: row.get(name) for name in ("id", "question", "prediction", "f1")} for row in rows]
            )
        for row in rows:
            fate = "failed" if row.get("error") else f"F1 {100 * row['f1']:.0f}, repairs: {len(row['rounds']) - 1}"
            screen.print(f"{plain(row['id'])}  [dim]{fate}[/]  {plain(row['question'])}")
        return None
    row, about = _row(rows, question), ("question_id", "method")
    made = [call for _, call in records(folder / "calls.jsonl") if call is not None]
    calls = [call for call in made if tuple(map(call.get, about)) == (row["id"], row["method"])]
    if json_:
        return print_json({**row, "calls": calls})
    screen.print(f"[bold]Question.[/] {plain(row['question'])}\n", highlight=False)
    if row.get("error"):
        screen.print(f"[red]Failed: {plain(row['error'])}[/]")
    else:
        for step in recorded_steps(row, found.answer(row["id"], ONE_PASS), found.passages):
            screen.print(step, highlight=False)
    screen.print(_table(calls))
    return None


def _row(rows: Sequence["Row"], wanted: str) -> "Row":
    found = [row for row in rows if row["id"] == wanted] or [row for row in rows if row["id"].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    fault = f"{len(found)} questions begin with {wanted!r}" if found else f"The run has no question {wanted!r}"
    raise InputError(f"{fault}; `marag trace RUN` lists them.")


def _table(calls: Sequence[Mapping[str, Any]]) -> Any:
    """The calls in order: stage, model, tokens, seconds and price of each."""
    from rich.table import Table

    table = Table("call", "model", "prompt", "cached", "reply", "s", "USD", title="Model calls", title_justify="left")
    for call in calls:
        fault = f" [red]{plain(str(call['error']))}[/]" if call.get("error") else ""
        tokens = (str(call.get(f"{name}_tokens", "")) for name in ("prompt", "cache_hit", "completion"))
        seconds = "cache" if call.get("cached") else f"{float(call.get('latency_s') or 0):.1f}"
        price = "unknown" if call.get("cost_usd") is None else f"{float(call['cost_usd']):.6f}"
        table.add_row(f"{plain(str(call['stage']))}{fault}", plain(str(call["model"])), *tokens, seconds, price)
    return table
