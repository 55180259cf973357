"""`marag keys` and `marag audit`: what the operator of a service needs beside it."""

import typer

from . import audit, keys


def register(app: typer.Typer) -> None:
    """Add the commands."""
    audit.register(app)
    keys.register(app)
