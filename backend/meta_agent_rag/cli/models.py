"""`marag models`: models that run on this machine, and their download."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..discovery import named
from ..errors import InputError
from .shared.command import (
    Assignments,
    Debug,
    Json,
    command,
    complain,
    console,
    group,
    plain,
    print_json,
    reporting,
    settings_of,
    show,
)

if TYPE_CHECKING:
    from ..llm.local import LocalModel
    from ..settings import Settings

_STOPPED = 130


_MODELS = group("models", "Models that run on this machine, and their download.", invoke_without_command=True)


@_MODELS.callback()
@reporting
def models(context: typer.Context, set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """List models for EMBEDDED_MODEL with size, licence and memory; `marag models get NAME` downloads one."""
    if context.invoked_subcommand is not None:
        return
    from ..llm.local import AUTO, PACKAGED, listed_model, local_models

    settings = settings_of(set_)
    taken = listed_model(settings.model_copy(update={"embedded_model": AUTO}))
    rows = [_row(model, settings, taken) for model in local_models().values()]
    if json_:
        print_json(rows)
        return
    screen = console()
    screen.print(f"[bold]{'model':14}{'parameters':>10}{'download':>11}{'memory':>10}  {'licence':12}[/]")
    for row in rows:
        figures = f"{row['parameters']:>9}B{row['bytes'] / 1e9:>8.1f} GB{row['memory'] / 1e9:>7.1f} GB"
        notes = ["downloaded"] * row["downloaded"] + ["chosen by auto"] * row["auto"]
        notes += [] if row["fits"] else ["too large for this machine"]
        screen.print(f"{row['name']:14}{figures}  {row['licence']:12}{', '.join(notes)}".rstrip())
    screen.print(f"`auto` chooses {PACKAGED if taken is None else taken.name}{' (packaged)' if taken is None else ''}.")


@command(_MODELS)
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model in the list.")],
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Download a model from the Hugging Face hub and check its SHA-256; continues an interrupted download."""
    from ..llm.local import PACKAGED, fetch, fits, local_models

    name = name.strip().lower()
    if name == PACKAGED:
        raise InputError(f"{PACKAGED} is packaged and needs no download; `marag models` lists larger models.")
    settings = settings_of(set_)
    model = named("model", name, local_models())
    if not fits(model, settings):
        complain(
            f"{model.name} needs {model.memory(settings) / 1e9:.1f} GB of memory, more than this machine has; `auto` "
            "will not choose it."
        )
    try:
        path = fetch(model, settings)
    except KeyboardInterrupt:
        complain(f"Stopped. The partial download is kept; `marag models get {model.name}` continues it.")
        raise typer.Exit(_STOPPED) from None
    about = {"name": model.name, "path": path, "sha256": model.sha256}
    show(about, f"Downloaded {model.name}: {plain(path)}", json_=json_)


def _row(model: "LocalModel", settings: "Settings", taken: "LocalModel | None") -> dict[str, Any]:
    from ..llm.local import fits

    return {
        **model.model_dump(mode="json", exclude={"attention"}),
        "memory": model.memory(settings),
        "path": model.path(settings),
        "downloaded": model.path(settings).is_file(),
        "fits": fits(model, settings),
        "auto": model == taken,
    }
