"""`marag serve` and `marag mcp`, and `marag keys` and `marag audit` for the operator of a service."""

import typer

from . import audit, keys, servers


def register(app: typer.Typer) -> None:
    """Add the commands."""
    audit.register(app)
    keys.register(app)
    servers.register(app)
