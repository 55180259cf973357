"""A finished run, as comparison and calibration read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meta_agent_rag.discovery import named
from meta_agent_rag.errors import InputError

from ..run.folder import SAMPLES, RunFolder

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

    @property
    def models(self) -> Mapping[str, str]:
        """The models that answered, by tier; the embedded model by its file."""
        provider = self.config["provider"]
        embedded = provider.get("embedded_model")
        return {tier: embedded or name for tier, name in sorted(provider["models"].items())}

    def setting(self, name: str) -> Any:
        """A setting of the run; `None` if it had none of that name."""
        return self.config["settings"].get(name)

    def rows(self, method: str) -> tuple[Row, ...]:
        """The rows of a method; raises `UnknownNameError`."""
        return named(f"method of the run {self.name!r} called", method, self.methods)


def past_run(run: str, results: Path) -> PastRun:
    """The run in a folder, by its path or its name in `results`.

    Raises `InputError` if the folder does not exist, its configuration or a row is damaged, or it has no row yet.
    """
    from .samples import require_whole  # imported here, so that --help is quick

    folder = RunFolder.named(run, results)
    config = folder.config()
    by_method: dict[str, list[Row]] = {name: [] for name in config["experiment"]["methods"]}
    rows = folder.rows()
    require_whole(rows.values(), folder.path / SAMPLES)
    for (_, method), row in rows.items():
        by_method.setdefault(method, []).append(row)
    methods = {name: tuple(own) for name, own in by_method.items() if own}
    name = folder.path.resolve().name
    if not methods:
        raise InputError(f"The run {name!r} has no answers yet; continue it with --resume {name}.")
    return PastRun(name=name, config=config, methods=methods)
