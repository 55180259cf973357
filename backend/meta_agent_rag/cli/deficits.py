"""`marag deficits list|check`: the knowledge deficits that can be diagnosed."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from ..wording import counted
from .shared.command import Assignments, Json, command, group, plain, say, settings_of, show

_DEFICITS = group("deficits", "The knowledge deficits that can be diagnosed.")


@command(_DEFICITS)
def list_(
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """List the deficits, both built-in and from DEFICITS_DIR."""
    from ..agent.deficits import discover_deficits

    deficits = discover_deficits(settings_of(set_).deficits_dir)
    fields = ("name", "when", "directive", "answer_mode", "retrieves", "examples", "priority")
    lines = (
        f"[bold]{one.name}[/] ({one.answer_mode}{', retrieves' if one.retrieves else ''})\n"
        f"    when {plain(one.when)}\n    then {plain(one.directive)}"
        for one in deficits
    )
    show([{field: getattr(one, field) for field in fields} for one in deficits], *lines, json_=json_)


@command(_DEFICITS)
def check(folder: Annotated[Path, typer.Argument(help="A folder with your own deficit files.")]) -> None:
    """Validate the deficit files of a folder together with the built-in ones."""
    from ..agent.deficits import Deficit, discover_deficits
    from ..agent.diagnose import critique_schema
    from ..agent.graph import build_graph
    from ..discovery import exported_from_folder

    own = [deficit.name for deficit in exported_from_folder(folder, "DEFICIT", Deficit)]
    if not own:
        raise InputError(f"No file in {str(folder)!r} exports DEFICIT; see docs/adding-a-deficit.md.")
    deficits = discover_deficits(folder)
    build_graph(deficits)
    critique_schema(deficits)
    say(f"{', '.join(own)}: OK; {counted(len(deficits.names), 'deficit')} in total.")
