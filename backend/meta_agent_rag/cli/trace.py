"""`marag trace`: shows from a benchmark run's files how an answer was produced."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, UnknownNameError
from .shared.command import Debug, Json, console, plain, print_json, reporting

if TYPE_CHECKING:
    from ..demo.run_files import Row, Run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trace")(trace)


@reporting
def trace(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder, its name in RESULTS, or a zip of it.")],
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question's id or its beginning; default: list all.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="The method to show; default: `metarag` if available.")] = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Show how a benchmark run answered a question: draft, facts, vote, diagnosis, repairs, calls and costs."""
    from ..demo.run_files import ONE_PASS, calls_of, open_folder, open_zip

    folder, by_name = Path(run).expanduser(), Path("RESULTS") / run
    if not folder.exists() and by_name.is_dir():
        folder = by_name
    found = open_zip(folder) if folder.is_file() else open_folder(folder)
    methods = list(dict.fromkeys(row["method"] for row in found.rows))
    if method is not None and method not in methods:
        raise UnknownNameError("method of this run", method, methods)
    name = method or ("metarag" if "metarag" in methods else methods[0])
    rows = [row for row in found.rows if row["method"] == name]
    if question is None:
        _list(rows, json_=json_)
        return
    row = _row(rows, question)
    calls = calls_of(folder, row)
    if json_:
        print_json({**row, "calls": calls})
        return
    one_pass = found.answer(row["id"], ONE_PASS)
    _show(found, row, None if one_pass is row else one_pass, calls)


def _row(rows: Sequence["Row"], wanted: str) -> "Row":
    found = [row for row in rows if row["id"] == wanted] or [row for row in rows if row["id"].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{len(found)} questions begin with {wanted!r}; give more of the id.")
    raise InputError(f"The run has no question {wanted!r}; `marag trace RUN` lists them.")


def _list(rows: Sequence["Row"], *, json_: bool) -> None:
    if json_:
        print_json([{name: row.get(name) for name in ("id", "question", "prediction", "gold", "f1")} for row in rows])
        return
    screen = console()
    for row in rows:
        rounds = row.get("rounds") or []
        fate = "failed" if row.get("error") else f"F1 {100 * float(row.get('f1') or 0):.0f}"
        repairs = f", repairs: {len(rounds) - 1}" if len(rounds) > 1 else ""
        screen.print(f"{plain(row['id'])}  [dim]{fate}{repairs}[/]  {plain(str(row.get('question', '')))}")


def _show(run: "Run", row: "Row", one_pass: "Row | None", calls: Sequence[Mapping[str, Any]]) -> None:
    from .shared.display import recorded_steps

    screen = console()
    screen.print(f"[bold]Question.[/] {plain(str(row.get('question', '')))}\n", highlight=False)
    if row.get("error"):
        screen.print(f"[red]Failed: {plain(str(row['error']))}[/]")
    elif row.get("rounds"):
        for step in recorded_steps(row, one_pass, run.passages):
            screen.print(step, highlight=False)
    else:
        screen.print(f"Answered {plain(str(row.get('prediction') or 'nothing'))} without rounds.")
    if calls:
        screen.print(_table(calls))


def _table(calls: Sequence[Mapping[str, Any]]) -> Any:
    """The calls in order: the stage, the model, the tokens, the time and the price of each."""
    from rich.table import Table

    from ..discovery import FORMER_STAGES

    table = Table("call", "model", "prompt", "cached", "reply", "s", "USD", title="Model calls", title_justify="left")
    for column in table.columns[2:]:
        column.justify = "right"
    for call in calls:
        stage = str(call.get("stage", ""))
        fault = f" [red]{plain(str(call['error']))}[/]" if call.get("error") else ""
        table.add_row(
            f"{plain(FORMER_STAGES.get(stage, stage))}{fault}",
            plain(str(call.get("model", ""))),
            *(str(call.get(f"{name}_tokens", "")) for name in ("prompt", "cache_hit", "completion")),
            "cache" if call.get("cached") else f"{float(call.get('latency_s') or 0):.1f}",
            _usd(call),
        )
    return table


def _usd(call: Mapping[str, Any]) -> str:
    from ..llm.providers import EMBEDDED

    if call.get("cost_usd") is None:
        return "free" if call.get("provider") == EMBEDDED else "unknown"
    return f"{float(call['cost_usd']):.6f}"
