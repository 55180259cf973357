"""`marag tour`: recorded answers of a 1.5B model, step by step, without a model, a key or a network."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .shared.command import command, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..demo.run_files import Stop


@command()
def tour(
    number: Annotated[int | None, typer.Argument(help="Show only this stop, counted from 1.", min=1)] = None,
    all_: Annotated[bool, typer.Option("--all", help="Print everything at once, without waiting for Enter.")] = False,
) -> None:
    """See, step by step, how the loop answers recorded questions. Needs no model, key or network."""
    from ..demo.run_files import tour as stops
    from .shared.command import console
    from .shared.display import recorded_steps

    screen, found = console(), stops()
    if number is not None and number > len(found):
        raise InputError(f"The tour has {len(found)} stops; choose one from 1 to {len(found)}.")
    waits = not all_ and sys.stdin.isatty() and sys.stdout.isatty()
    screen.print(_START, highlight=False)
    for index, stop in enumerate(found, start=1):
        if number not in {None, index}:
            continue
        for step in (_head(index, len(found), stop), *recorded_steps(stop.row, stop.one_pass, stop.run.passages)):
            screen.print(step, highlight=False)
            if waits and not _goes_on(screen):
                return
    screen.print(_END, highlight=False)


_START = (
    "Recorded answers of a 1.5B model. The loop was developed with these questions: "
    "they show how it works, not how much it gains.\n"
)
_END = (
    "Ask a question of your own: [bold]marag ask[/]. See the same in a browser: [bold]marag demo[/]. "
    "Measure: [bold]marag bench runner --dataset sample --n 5[/]."
)


def _goes_on(screen: Any) -> bool:
    """Wait for Enter; false if the user quits."""
    try:
        return screen.input("[dim]Enter: next step, q: quit[/] ").strip().lower() not in {"q", "quit", "exit"}
    except EOFError:
        return False


def _head(index: int, of: int, stop: "Stop") -> "RenderableType":
    from rich.console import Group
    from rich.rule import Rule

    title = Rule(f"{index} of {of}: {plain(stop.shows)}", align="left")
    dataset = plain(stop.run.name.removeprefix("recorded: "))
    return Group(title, f"[bold]Question[/] ({dataset})[bold].[/] {plain(stop.row['question'])}\n")
