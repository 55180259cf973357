"""`marag serve`, `marag mcp`, and `marag keys` and `marag audit`, which the operator of a service needs beside it."""

import typer

from . import audit, keys, servers


def register(app: typer.Typer) -> None:
    """Add the commands."""
    audit.register(app)
    keys.register(app)
    servers.register(app)
