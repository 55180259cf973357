"""What defines a run, and how it is carried out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from meta_agent_rag.settings import Settings

from ..methods import named
from ..recording import Recorder, Recording
from . import DEFAULT_FAILURE_SHARE
from .arms import Arm, arms

Mode = Literal["gold", "supporting", "open_domain", "imported"]
MODES: tuple[Mode, ...] = ("gold", "supporting", "open_domain")
_EXPERIMENT = (
    *("dataset", "mode", "methods", "n", "limit", "sample_ids", "shard", "seed", "data_file", "aliases_file"),
    *("revision", "corpus", "sweeps", "ablations", "oracles", "equals", "judge", "scorer"),
)
_FILES = ("data_file", "aliases_file")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that must be the same for two runs to be one experiment, as given on the command line.

    `limit` takes rows by position ("A-B", from 1) and `sample_ids` by id instead of a draw of `n`; `shard` ("I/N") is
    the part of these that this run covers; `revision` is that of the data set on the hub. `sweeps`, `ablations`,
    `oracles` and `equals` are those of `benchmarks.run.arms`; `judge` has a model judge the answers too,
    and `scorer` names the function that scores them. `concurrency` is the number of questions at once, by default what
    suits the provider. `model_words` describe the model to a reader. `recorded` is what a record says of the run that
    is replayed, and `recorded_arms` the rows of its table where these are not asked again.
    """

    dataset: str
    mode: Mode
    settings: Settings
    methods: tuple[str, ...] = ()
    n: int | None = None
    limit: str | None = None
    seed: int = 42
    data_file: Path | None = None
    revision: str | None = None
    aliases_file: Path | None = None
    corpus: str | None = None
    concurrency: int | None = None
    sample_ids: tuple[str, ...] = ()
    shard: str | None = None
    sweeps: tuple[str, ...] = ()
    ablations: tuple[str, ...] = ()
    oracles: tuple[str, ...] = ()
    equals: tuple[str, ...] = ()
    judge: bool = False
    scorer: str = "official"
    model_words: str = ""
    recorded: Mapping[str, Any] | None = None
    recorded_arms: tuple[Arm, ...] = ()

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The rows of the table, in its order."""
        return self.recorded_arms or arms(
            named(",".join(self.methods), self.settings.methods_dir),
            sweeps=self.sweeps,
            ablations=self.ablations,
            oracles=self.oracles,
            equals=self.equals,
        )

    @property
    def experiment(self) -> dict[str, Any]:
        """What a resumed run must have in common with its start, as JSON values."""
        values = {name: getattr(self, name) for name in _EXPERIMENT}
        for name in _FILES:
            values[name] = None if values[name] is None else str(values[name].resolve())
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def as_begun(self, was: Mapping[str, Any]) -> "RunConfig":
        """This configuration with the experiment of an earlier run; a data file given now stands in for its own."""
        kept: dict[str, Any] = {name: was[name] for name in _EXPERIMENT if name in was}
        kept = {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}
        for name in _FILES:
            there = None if kept.get(name) is None else Path(kept[name])
            kept[name] = getattr(self, name) or there
        return replace(self, **kept)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is carried out, which does not affect its answers.

    `retry_failed` retries questions that failed before; a run stops once more than the share `fail_on_error` of a
    row's answers failed. A recorder records the run, a recording provides its rows; without `plots` the report has
    none.
    """

    retry_failed: bool = False
    fail_on_error: float = DEFAULT_FAILURE_SHARE
    recorder: Recorder | None = None
    recording: Recording | None = None
    plots: bool = True
