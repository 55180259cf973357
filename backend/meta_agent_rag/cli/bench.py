"""`marag bench NAME ...`: the benchmark's commands, from an installed package or a clone."""

import importlib
from importlib.util import find_spec

import typer

from .shared.command import benchmark_package, group, reporting

_COMMANDS = {
    "runner": "Run methods over a data set, and write a run folder.",
    "merge": "Merge the shards of a run.",
    "import": "Score the predictions of other systems with our metrics.",
    "compare": "Compare two methods or runs, question by question.",
    "calibrate": "Fit the monitor's policy on runs, or measure a fitted one on others.",
    "socratic": "Measure the coach's hooks on the sample course.",
    "grounded": "Measure what the checks on grounded answers withhold and let through.",
    "speed": "Measure the package itself.",
}


@reporting
def _run(context: typer.Context) -> None:
    package, _ = benchmark_package()
    name = f"{package}.{context.info_name}"
    found = find_spec(name)
    is_package = found is not None and found.submodule_search_locations is not None
    module = importlib.import_module(f"{name}.__main__" if is_package else name)
    module.app(args=context.args, prog_name=context.command_path)


_BENCH = group("bench", "The benchmark: run, compare, calibrate, measure.")
for _name, _purpose in _COMMANDS.items():  # with the options of `python -m benchmarks.NAME`
    _as_given = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    _BENCH.command(_name, help=_purpose, context_settings=_as_given)(_run)
