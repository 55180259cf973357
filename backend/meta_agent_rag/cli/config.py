"""`marag config show`: every setting with its value; secrets are masked."""

import typer

from .shared.command import Assignments, Debug, Json, console, plain, print_json, reporting, settings_of
from .shared.managing import add_group


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_group(app, "config", "The configuration.", show, example)


@reporting
def show(set_: Assignments = None, json_: Json = False, debug: Debug = False) -> None:
    """List every setting with its value and meaning."""
    from .shared.choices import described

    settings = settings_of(set_)
    values = {name.upper(): value for name, value in settings.model_dump(mode="json").items()}
    if json_:
        print_json(values)
        return
    screen = console()
    for name, description, default in described():
        changed = "" if getattr(settings, name.lower()) == default or default is None else "  [yellow](changed)[/]"
        shown = "-" if values[name] is None else plain(values[name])
        screen.print(f"[bold]{name}[/] = {shown}{changed}\n    [dim]{plain(description)}[/]")


@reporting
def example(debug: Debug = False) -> None:
    """Print `.env.example`: every setting, commented out, with its default."""
    from .shared.env_example import env_example

    typer.echo(env_example(), nl=False)
