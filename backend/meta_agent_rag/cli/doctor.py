"""`marag doctor`: what is configured and reachable, what was chosen and why, and how to fix what fails."""

from typing import TYPE_CHECKING

import typer

from .shared.command import Assignments, Json, command, console, plain, print_json, run, settings_of

if TYPE_CHECKING:
    from ..checkup import CheckResult

_MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "fail": "[red]fail[/]"}


@command()
def doctor(set_: Assignments = None, json_: Json = False) -> None:
    """Check provider, model, encoder, stores and folders; exits with 1 if a check fails."""
    from ..checkup import check_up

    results = run(check_up(settings_of(set_)))
    if json_:
        print_json([vars(result) for result in results])
    else:
        for result in results:
            _show(result)
    if any(result.status == "fail" for result in results):
        raise typer.Exit(1)


def _show(result: "CheckResult") -> None:
    screen = console()
    screen.print(f"{_MARKS[result.status]}  [bold]{result.subject}[/]: {plain(result.words)}")
    if result.remedy:
        screen.print(f"        -> {plain(result.remedy)}")
