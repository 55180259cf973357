"""The entry point: finds the commands and runs one."""

import importlib
import os
import pkgutil
import sys

import typer

from .shared.command import app, complain, denied

__all__ = ["app", "main"]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"marag {version('meta-agent-rag')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


for _module in pkgutil.iter_modules(importlib.import_module(__package__).__path__):
    importlib.import_module(f"{__package__}.{_module.name}")  # each adds its commands


def main() -> None:
    """Run `marag`. If its output pipe is closed early, e.g. by `head`, the command ends silently with exit code 0."""
    output = sys.stdout
    try:
        app()
    except SystemExit:
        if sys.stdout is not output:  # replaced by Typer, because the pipe was closed while it printed help
            raise SystemExit(0) from None
        raise
    except OSError as error:  # while it printed help
        complain(denied(error))
        raise SystemExit(2) from None
    finally:
        _flush()


def _flush() -> None:
    """Flush buffered output here, because Python reports a closed pipe or a full disk that it finds at exit."""
    if sys.__stdout__ is None:
        return
    try:
        sys.__stdout__.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    main()
