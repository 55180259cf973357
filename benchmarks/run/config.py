"""What defines a run, and how it is carried out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from meta_agent_rag.settings import Settings

from ..methods import named
from ..recording import Player, Recorder
from .arms import Arm, arms

Mode = Literal["gold", "supporting", "open_domain", "imported"]
MODES: tuple[Mode, ...] = ("gold", "supporting", "open_domain")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that must be the same for two runs to be one experiment, as given on the command line.

    `limit` takes rows by position ("A-B", from 1) and `sample_ids` by id instead of a draw of `n`; `shard` ("I/N") is
    the part of these that this run covers; `revision` is that of the data set on the hub. `sweeps`, `ablations`,
    `oracles`, `equals` and `repeats` are those of `benchmarks.run.arms`; `judge` has a model judge the answers too.
    `concurrency` is the number of questions at once, by default what suits the provider. `model_words` describe
    the model to a reader. `recorded` is what a record says of the run that is replayed, and `recorded_arms` the rows
    of its table where these are not asked again.
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
    repeats: int = 1
    judge: bool = False
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
            repeats=self.repeats,
        )


@dataclass(frozen=True, kw_only=True)
class Conduct:
    """How a run is carried out, which does not affect its answers.

    `retry_failed` retries questions that failed before; `fail_on_error` stops at the first failure;
    a recorder records the run; a player takes its rows from a record or, if `strict`, recomputes them from the
    record's calls; without `plots` the report has none.
    """

    retry_failed: bool = False
    fail_on_error: bool = False
    recorder: Recorder | None = None
    player: Player | None = None
    strict: bool = False
    plots: bool = True
