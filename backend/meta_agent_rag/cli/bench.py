"""`marag bench NAME ...`: the benchmark's commands, from an installed package and in a clone alike."""

import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from .shared.command import reporting

_INSTALLED = "meta_agent_rag.benchmarks"
_IN_A_CLONE = "benchmarks"
_COMMANDS = {
    "runner": "Run methods over a data set, and write a run folder.",
    "compare": "Compare two methods, runs or files of predictions, question by question.",
    "calibrate": "Fit the monitor's policy on runs, or measure a fitted one on others.",
    "socratic": "Measure the coach's hooks on the sample course.",
    "speed": "Measure the package itself.",
    "injection": "Train and measure the search for instructions that are hidden in passages.",
}


def register(app: typer.Typer) -> None:
    """Add the commands; each takes the options of `python -m benchmarks.NAME`."""
    group = typer.Typer(help="The benchmark: run, compare, calibrate, measure.", no_args_is_help=True)
    for name, purpose in _COMMANDS.items():
        as_given = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
        group.command(name, help=purpose, context_settings=as_given)(_run)
    app.add_typer(group, name="bench")


@reporting
def _run(context: typer.Context) -> None:
    import runpy

    sys.argv = [context.command_path, *context.args]
    runpy.run_module(f"{_package()}.{context.info_name}", run_name="__main__", alter_sys=True)


def _package() -> str:
    """The package of the benchmark: within ours where it was installed, beside it in a clone."""
    if find_spec(_INSTALLED) is not None:
        return _INSTALLED
    sys.path.insert(0, str(Path(__file__).parents[3]))
    return _IN_A_CLONE
