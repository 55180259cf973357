"""`marag doctor`: what is configured and reachable, what was chosen and why, and how to fix what fails."""

from typing import TYPE_CHECKING

import typer

from .shared.command import Assignments, Json, command, plain, run, settings_of, show

if TYPE_CHECKING:
    from ..checkup import CheckResult

_MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "fail": "[red]fail[/]"}


@command()
def doctor(set_: Assignments = None, json_: Json = False) -> None:
    """Check provider, model, encoder, stores and folders; exits with 1 if a check fails."""
    from ..checkup import check_up

    results = run(check_up(settings_of(set_)))
    show([vars(result) for result in results], *map(_line, results), json_=json_)
    if any(result.status == "fail" for result in results):
        raise typer.Exit(1)


def _line(result: "CheckResult") -> str:
    remedy = f"\n        -> {plain(result.remedy)}" if result.remedy else ""
    return f"{_MARKS[result.status]}  [bold]{result.subject}[/]: {plain(result.words)}{remedy}"
