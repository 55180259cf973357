"""Discover the measurements, one file each, and run the chosen one; only its modules are imported."""

import ast
import importlib
import pkgutil
from pathlib import Path

import typer

from meta_agent_rag.cli.shared.command import reporting


def _app(about: str | None = None) -> typer.Typer:
    return typer.Typer(help=about, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


app = _app("Measure the package itself; every figure is printed with how it was obtained.")


@app.callback(no_args_is_help=True)
def _measurements() -> None:
    pass


@reporting
def _run(context: typer.Context) -> None:
    measurement = _app()
    importlib.import_module(f"{__package__}.{context.info_name}").register(measurement)
    measurement(args=context.args, prog_name=context.command_path)


def _purpose(file: Path) -> str:
    """The first sentence of a module's docstring, without importing it."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]


def _register() -> None:
    as_given = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    home = Path(__file__).parent
    for module in sorted(pkgutil.iter_modules([str(home)]), key=lambda found: found.name):
        if module.name != "__main__" and not module.ispkg:
            purpose = _purpose(home / f"{module.name}.py")
            app.command(module.name, help=purpose, context_settings=as_given)(_run)


_register()

if __name__ == "__main__":
    app()
