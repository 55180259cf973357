"""A finished run, as comparison and calibration read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from meta_agent_rag.discovery import named
from meta_agent_rag.errors import InputError
from meta_agent_rag.wording import first_fault

from ..run.folder import SAMPLES, RunFolder

Row = Mapping[str, Any]
_Shape = TypeVar("_Shape", bound=BaseModel)


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

    def checked(self, row: Row, shape: type[_Shape]) -> _Shape:
        """The fields of a row that a reader needs; raises `InputError` if one is missing."""
        try:
            return shape.model_validate(dict(row))
        except ValidationError as error:
            raise InputError(
                f"The run {self.name!r} has a damaged row in {SAMPLES}, of {row['method']!r} for {row['id']!r} "
                f"({first_fault(error)}); run it again, or leave this run out."
            ) from None


def past_run(run: str, results: Path) -> PastRun:
    """The run in a folder, by its path or its name in `results`.

    Raises `InputError` if the folder does not exist, its configuration is damaged, or it has no row yet.
    """
    folder = RunFolder.named(run, results)
    config = folder.config()
    by_method: dict[str, list[Row]] = {name: [] for name in config["experiment"]["methods"]}
    for (_, method), row in folder.rows().items():
        by_method.setdefault(method, []).append(row)
    methods = {name: tuple(rows) for name, rows in by_method.items() if rows}
    name = folder.path.resolve().name
    if not methods:
        raise InputError(f"The run {name!r} has no answers yet; continue it with --resume {name}.")
    return PastRun(name=name, config=config, methods=methods)
