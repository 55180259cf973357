"""Shared by commands: the group of those that manage something, and the confirmation before a deletion or a cost."""

import sys
from collections.abc import Callable

import typer

from ...errors import InputError
from .command import complain


def add_group(app: typer.Typer, name: str, about: str, *commands: Callable[..., None]) -> None:
    """Add a group of commands, each named like its function."""
    group = typer.Typer(help=about, no_args_is_help=True)
    for command in commands:
        group.command(command.__name__.rstrip("_"))(command)
    app.add_typer(group, name=name)


def confirm(step: str, question: str, *, declined: str, json_: bool = False) -> None:
    """Ask before a deletion or a cost; if nobody can be asked, or the answer is no, end the command."""
    if json_ or not sys.stdin.isatty():
        raise InputError(f"{step} needs confirmation; add --yes.")
    if not typer.confirm(question, err=True):
        complain(declined)
        raise typer.Exit(1)
