"""`marag new KIND NAME`: creates a working deficit, operator, route, method or data set to adapt, and its test."""

from pathlib import Path
from typing import Annotated

import typer

from ..shared.command import Assignments, Debug, Json, print_json, reporting, say, settings_of

_KINDS = sorted(file.stem for file in (Path(__file__).parent / "templates").glob("*.yaml"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(new)


@reporting
def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(_KINDS)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")],
    set_: Assignments = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Create a working example of a kind with its test, for you to adapt.

    In a clone, the files go into the source tree and the generated documents are updated. Elsewhere, or if the kind's
    setting (DEFICITS_DIR, OPERATORS_DIR, ROUTES_DIR, METHODS_DIR, DATASETS_DIR) is set, they go into that folder, by
    default `my_deficits` etc.
    """
    from .creation import create

    created = create(kind, name, settings_of(set_))
    if json_:
        print_json({"files": created.files, "next": created.next})
        return
    for path in created.files:
        say(f"written: {path}")
    say(f"next: {created.next}")
