"""Discover the measurements, one file each, and run the chosen one."""

import importlib
import pkgutil

import typer

app = typer.Typer(
    help="Measure the package itself; every figure is printed with how it was obtained.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _measurements() -> None:
    pass


def _register() -> None:
    package = importlib.import_module(str(__package__))
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        if module.name != "__main__" and not module.ispkg:
            importlib.import_module(f"{__package__}.{module.name}").register(app)


_register()

if __name__ == "__main__":
    app()
