"""A run that is there already, as comparing and calibrating read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_agent_rag.errors import InputError, UnknownNameError

from .run_folder import CONFIG, RunFolder

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """A run's name, its `config.json` and its rows so far by method, in the order of the table."""

    name: str
    config: Mapping[str, Any]
    methods: Mapping[str, tuple[Row, ...]]

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        return str(self.config["experiment"]["dataset"])

    def setting(self, name: str) -> Any:
        """A setting that it was run with; `None` where there was none of that name."""
        return self.config["settings"].get(name)

    def rows(self, method: str) -> tuple[Row, ...]:
        """The rows of a method; raises `UnknownNameError`."""
        if method not in self.methods:
            raise UnknownNameError(f"method of the run {self.name!r} called", method, list(self.methods))
        return self.methods[method]


def past_run(run: str, results: Path) -> PastRun:
    """The run in a folder, by its path or its name below `results`.

    Raises `InputError` where there is no such folder, where its configuration is damaged, and where it
    has no row yet.
    """
    for path in (Path(run), results / run):
        if (path / CONFIG).is_file():
            return _read(RunFolder(path))
    raise InputError(f"{run!r} is no run folder, and {str(results)!r} has none of that name; see --output-dir.")


def _read(folder: RunFolder) -> PastRun:
    config = folder.config()
    by_method: dict[str, list[Row]] = {name: [] for name in config["experiment"]["methods"]}
    for (_, method), row in folder.rows().items():
        by_method.setdefault(method, []).append(row)
    methods = {name: tuple(rows) for name, rows in by_method.items() if rows}
    name = folder.path.resolve().name
    if not methods:
        raise InputError(f"The run {name!r} has no answer yet; go on with it by --resume {name}.")
    return PastRun(name=name, config=config, methods=methods)
