"""`marag doctor`: what is configured and reachable, what was chosen and why, and how to fix what fails."""

from typing import TYPE_CHECKING

import typer

from .shared.command import Assignments, Debug, Json, console, plain, print_json, reporting, run, settings_of

if TYPE_CHECKING:
    from ..checkup import Finding

_MARKS = {"ok": "[green]ok[/]  ", "note": "[yellow]note[/]", "fail": "[red]fail[/]"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


@reporting
def doctor(set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """Check provider, model, encoder, stores and folders; exits with 1 if a check fails."""
    from ..checkup import check_up

    findings = run(check_up(settings_of(set_)))
    if json_:
        print_json([vars(finding) for finding in findings])
    else:
        for finding in findings:
            _show(finding)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(1)


def _show(finding: "Finding") -> None:
    screen = console()
    screen.print(f"{_MARKS[finding.status]}  [bold]{finding.subject}[/]: {plain(finding.words)}")
    if finding.remedy:
        screen.print(f"        -> {plain(finding.remedy)}")
