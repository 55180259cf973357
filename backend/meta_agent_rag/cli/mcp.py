"""`marag mcp`: the loop as a tool for clients that speak the Model Context Protocol."""

from typing import Annotated

import typer

from .command import Assignments, Debug, complain, reporting, run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(mcp)


@reporting
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP at /mcp instead of stdin and stdout.")] = (
        False
    ),
    host: Annotated[
        str, typer.Option(help="With --http, the address to listen on; clients on other machines need a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http, the port.")] = 8001,
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Offer `ask` and `search` as tools to assistants (Model Context Protocol); needs the extra `mcp`."""
    from ..service.mcp import serve_http, serve_stdio
    from ..settings import Settings

    settings = Settings.load(set_ or ())
    if http:
        complain(f"Serving MCP at http://{host}:{port}/mcp until stopped.")
        run(serve_http(settings, host=host, port=port))
    else:
        run(serve_stdio(settings))
