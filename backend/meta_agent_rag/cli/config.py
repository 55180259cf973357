"""`marag config show|example`: every setting with its value, secrets masked; and the text of `.env.example`."""

import json

import typer

from .shared.command import Assignments, Json, command, console, group, plain, print_json, settings_of

_HEAD = """\
# Settings of Meta-Agent-RAG. Copy this file to .env and uncomment what you need; everything is optional.
# Precedence: command line (--set NAME=VALUE) > environment > .env > default. An empty value means the default.
# Written by `marag config example`.
"""
_CONFIG = group("config", "The configuration.")


@command(_CONFIG)
def show(set_: Assignments = None, json_: Json = False) -> None:
    """List every setting with its value and meaning."""
    from ..settings import Settings, described

    settings = settings_of(set_)
    values = {name.upper(): value for name, value in settings.model_dump(mode="json").items()}
    if json_:
        print_json(values)
        return
    screen = console()
    for name, description, _ in described():
        default = Settings.model_fields[name.lower()].get_default(call_default_factory=True)
        changed = "" if getattr(settings, name.lower()) == default else "  [yellow](changed)[/]"
        value = values[name]
        shown = json.dumps(value) if isinstance(value, dict) else _written(value)
        screen.print(
            f"[bold]{name}[/] = {'-' if value is None else plain(shown)}{changed}\n    [dim]{plain(description)}[/]"
        )


@command(_CONFIG)
def example() -> None:
    """Print `.env.example`: every setting, commented out, with its default."""
    typer.echo(env_example(), nl=False)


def env_example() -> str:
    """The text of `.env.example`."""
    from ..settings import described

    entries = [
        f"# {description}\n# {name}={'' if default is None or default == {} else _written(default)}\n"
        for name, description, default in described()
    ]
    return "\n".join([_HEAD, *entries])


def _written(default: object) -> object:
    """A default in environment syntax: the names of a list are separated by commas."""
    return ",".join(map(str, default)) if isinstance(default, tuple | list) else default
