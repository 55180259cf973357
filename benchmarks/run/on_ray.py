"""A run carried out by a Ray cluster: its shards are tasks, and a task whose node is lost runs again on another.

All nodes share the folder in which the run was started, and the results are merged into one run folder at the end.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_settings import EnvSettingsSource

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.discovery import named
from meta_agent_rag.errors import CostLimitError, InputError, MetaRagError
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.retrieval.encoders.cluster import join
from meta_agent_rag.settings import Key, Settings, Url, lent_environment

from ..merge import merge_folders
from .benchmarking import NoAnswerError, benchmark, with_corpus
from .config import RunConfig, RunOptions
from .folder import CONFIG, RunFolder
from .plan import RunPlan, planned, resumed
from .provenance import OF_A_MACHINE

_BUSY_SECONDS = 3600.0
_PAUSE_SECONDS = 0.5
_UNIT = Decimal("1e-9")


class ShardFailedError(MetaRagError):
    """A shard ended before all its questions were answered."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True)
class ShardTask:
    """What a node needs: the shard's configuration, the folder for relative paths, and the place of its run folder.

    `keys` are those of the run's endpoints that are no settings, by variable; `node` is where it ran before, if known.
    """

    config: RunConfig
    fail_on_error: float
    home: str
    place: str
    keys: Mapping[str, SecretStr]
    node: str = ""

    @property
    def shard(self) -> str:
        """The shard as I/N."""
        return self.config.shard or ""


@dataclass(frozen=True, kw_only=True)
class ShardOutcome:
    """How a shard ended: its run folder, if any, and what stopped it, if anything; `at_limit`: its cost limit."""

    shard: str
    folder: str | None = None
    error: str = ""
    at_limit: bool = False
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class ShardEngine:
    """An engine that runs tasks: how many at once, and how."""

    size: Callable[[], int]
    carry_out: Callable[[Sequence[ShardTask]], Iterable[ShardOutcome]]


def spread(
    plan: RunPlan, options: RunOptions, engine: ShardEngine, *, shards: int | None, output_dir: Path, say: bool
) -> tuple[RunFolder, dict[str, Any]]:
    """Run the plan as shards and merge them; returns the folder and the summary of the whole.

    The cost limit holds for all shards together. Repeating the command continues an interrupted run with the same
    number of shards. Raises `InputError` if that number differs, `ShardFailedError`, and `CostLimitError`.
    """
    config = plan.config
    folder = output_dir.absolute() / f".spread-{_digest(config)}"
    size, begun = engine.size(), _shards_in(folder)
    if begun is not None and shards not in (None, begun):
        raise InputError(
            f"An interrupted run of this command has {begun} shards; give --shards {begun} to continue it, or delete "
            f"{str(folder)!r} to start over."
        )
    if config.mode == "open_domain" and config.corpus is None:
        with_corpus(plan)  # once, not once a shard
    if say:
        complain(f"Model: {config.model_words}.")
    count = begun or min(len(plan.questions), shards or size)
    tasks = tasks_of(config, options, folder, count)
    carry_out = _told(engine, count) if say else engine.carry_out
    outcomes = carried_out(tasks, carry_out, config.settings.cost_limit_usd, _paid_usd)
    if failed := [outcome for outcome in outcomes if outcome.error]:
        raise _unfinished(failed, len(outcomes), folder, tasks)
    merged = merge_folders([outcome.folder or "" for outcome in outcomes], output_dir, plots=options.plots)
    merged[0].note_limit(config.settings.cost_limit_usd)
    shutil.rmtree(folder)
    return merged


def tasks_of(config: RunConfig, options: RunOptions, folder: Path, count: int) -> list[ShardTask]:
    """The tasks of all shards, each with its own place in `folder`."""
    endpoints = {row.key for row in config.settings.model_roles.endpoints.values() if row.key}
    foreign = sorted(name for name in endpoints if name.lower() not in Settings.model_fields)
    return [
        ShardTask(
            config=replace(config, shard=f"{number}/{count}"),
            fail_on_error=options.fail_on_error,
            home=str(Path.cwd()),
            place=str(folder / f"{number}-of-{count}"),
            keys={name: key for name in foreign if (key := config.settings.secret(name)) is not None},
        )
        for number in range(1, count + 1)
    ]


def carried_out(
    tasks: Sequence[ShardTask],
    carry_out: Callable[[Sequence[ShardTask]], Iterable[ShardOutcome]],
    limit_usd: float | None,
    paid: Callable[[ShardTask], Decimal],
) -> list[ShardOutcome]:
    """Run all tasks, and resume those that stopped at their share of the limit while others left something over.

    What a shard has spent stays its own, and the rest is divided among the unfinished; if their shares are too small
    for a call, a single one gets it all.
    """
    outcomes: dict[str, ShardOutcome] = {}
    open_, at_once = list(tasks), len(tasks)
    while open_ and at_once:
        before = {task.shard: paid(task) for task in tasks}
        chosen = open_[:at_once]
        outcomes |= {
            one.shard: one for one in carry_out([_limited(task, before, limit_usd, len(chosen)) for task in chosen])
        }
        rest = [replace(task, node=outcomes[task.shard].node) for task in open_ if outcomes[task.shard].at_limit]
        if len(rest) == len(open_) and all(paid(task) == before[task.shard] for task in chosen):
            at_once = 1 if at_once > 1 else 0
        open_ = rest
    return [outcomes[task.shard] for task in tasks]


def _limited(task: ShardTask, paid: Mapping[str, Decimal], limit_usd: float | None, shared_by: int) -> ShardTask:
    if limit_usd is None:
        return task
    left = max(Decimal(str(limit_usd)) - sum(paid.values()), Decimal(0))
    own = (paid[task.shard] + left / shared_by).quantize(_UNIT, ROUND_DOWN)
    settings = task.config.settings.model_copy(update={"cost_limit_usd": float(own)})
    return replace(task, config=replace(task.config, settings=settings))


def work(task: ShardTask) -> ShardOutcome:
    """Run or continue the shard to its end, in the calling process.

    A process that was cut off from its cluster may still be working on the same shard; this call waits for it.
    """
    if not Path(task.home).is_dir():
        return ShardOutcome(
            shard=task.shard,
            error=f"A node lacks the folder {task.home!r}; start the run from storage that all nodes share.",
        )
    os.chdir(task.home)
    keys = {name: key.get_secret_value() for name, key in task.keys.items()}
    error, at_limit = "", False
    with redirect_stderr(StringIO()), redirect_stdout(StringIO()), lent_environment(keys):
        try:
            _run(task)
        except NoAnswerError:
            pass  # complete, although nothing was answered
        except MetaRagError as raised:
            error, at_limit = str(raised), isinstance(raised, CostLimitError)
    begun = _begun(task.place)
    place = None if begun is None else str(begun.path)
    return ShardOutcome(shard=task.shard, folder=place, error=error, at_limit=at_limit)


def _run(task: ShardTask) -> None:
    config = replace(task.config, settings=on_node(task.config.settings, Settings.load()))
    begun = _begun(task.place)
    if begun is not None:
        _wait_for(begun)
        config = resumed(config, begun, frozenset({"cost_limit_usd"}))
    options = RunOptions(plots=False, fail_on_error=task.fail_on_error)
    benchmark(planned(config), options, begun, Path(task.place), "none")


def on_node(run: Settings, node: Settings) -> Settings:
    """The settings of the run, with the node's own data folder, addresses, and keys that the run lacks.

    A node's address, which must be in its own environment (a `.env` is that of the run), only replaces another one, and
    its keys never change the choice of the provider or its key.
    """
    fields = Settings.model_fields
    set_here = EnvSettingsSource(Settings).env_vars
    own = {name: getattr(node, name) for name in OF_A_MACHINE}
    for name, field in fields.items():
        if field.annotation == Url | None and getattr(run, name) and name in set_here and getattr(node, name):
            own[name] = getattr(node, name)
    found = run.model_copy(update=own)
    for name, field in fields.items():
        if field.annotation == Key | None and getattr(run, name) is None and (key := getattr(node, name)) is not None:
            keyed = found.model_copy(update={name: key})
            before, after = choose_provider(found), choose_provider(keyed)
            same = before.reason == after.reason and before.api_key in (None, after.api_key)
            found = keyed if same else found
    return found


def _wait_for(folder: RunFolder) -> None:
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            with folder.locked():
                return
        except InputError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)


def _begun(place: str) -> RunFolder | None:
    """The run folder of an earlier attempt; one without a configuration was never started."""
    found = sorted(file.parent for file in Path(place).glob(f"*/{CONFIG}"))
    return RunFolder(found[0]) if found else None


def _paid_usd(task: ShardTask) -> Decimal:
    folder = _begun(task.place)
    return Decimal(0) if folder is None else folder.paid_usd()


def _told(engine: ShardEngine, count: int) -> Callable[[Sequence[ShardTask]], Iterator[ShardOutcome]]:
    """The engine's work, with a line on stderr for each shard that ends."""
    finished: set[str] = set()

    def carry_out(tasks: Sequence[ShardTask]) -> Iterator[ShardOutcome]:
        for outcome in engine.carry_out(tasks):
            if outcome.at_limit:
                complain(f"Shard {outcome.shard} stopped at its share of the cost limit.")
            elif not outcome.error:
                finished.add(outcome.shard)
                complain(f"Shard {outcome.shard} is finished ({len(finished)} of {count}).")
            yield outcome

    return carry_out


def _unfinished(failed: Sequence[ShardOutcome], count: int, folder: Path, tasks: Sequence[ShardTask]) -> MetaRagError:
    """The error of a run that is incomplete, once the reasons of single shards are reported."""
    for outcome in failed:
        if not outcome.at_limit:
            complain(f"Shard {outcome.shard}: {outcome.error}")
    failures = f"{len(failed)} of {count} shards did not finish."
    start_over = f"to start over, delete {str(folder)!r} first."
    limit = tasks[0].config.settings.cost_limit_usd
    if limit is None or not any(outcome.at_limit for outcome in failed):
        return ShardFailedError(f"{failures} The same command continues them; {start_over}")
    spent = sum(map(_paid_usd, tasks), Decimal(0))
    return CostLimitError(
        f"{failures} The run has spent {spent:.6f} USD of its limit of {limit} USD, and the next call could cost more "
        f"than is left. The same command with a higher cost limit continues them; {start_over}"
    )


def _digest(config: RunConfig) -> str:
    """A digest of the run, independent of its cost limit and of this machine."""
    settings = config.settings.model_dump(mode="json", exclude={*OF_A_MACHINE, "cost_limit_usd"})
    return hashlib.sha256(json.dumps([config.experiment, settings], sort_keys=True).encode()).hexdigest()[:12]


def _shards_in(folder: Path) -> int | None:
    """The number of shards of an interrupted run; `None` if there is none."""
    counts = {int(place.name.partition("-of-")[2]) for place in folder.glob("*-of-*")}
    return max(counts, default=None)


def _on_ray(tasks: Sequence[ShardTask]) -> Iterator[ShardOutcome]:
    """Run all tasks on the cluster, one per processor at a time, and yield each outcome once it is known."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def on_node(task: ShardTask) -> ShardOutcome:
        return replace(work(task), node=ray.get_runtime_context().get_node_id())

    remote = ray.remote(num_cpus=1, max_retries=-1)(on_node)
    begun: dict[Any, ShardTask] = {}
    for task in tasks:
        place = NodeAffinitySchedulingStrategy(task.node, soft=True) if task.node else "SPREAD"
        begun[remote.options(scheduling_strategy=place).remote(task)] = task
    waiting = list(begun)
    while waiting:
        try:
            (done,), waiting = ray.wait(waiting)
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise ShardFailedError(
                f"The Ray cluster was lost ({_first_line(error)}); the same command continues."
            ) from None
        try:
            yield ray.get(done)
        except ray.exceptions.RayError as error:  # its text is a traceback, perhaps from another machine
            yield ShardOutcome(shard=begun[done].shard, error=f"its task was lost ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "cause", None) or error).strip().splitlines() or [repr(error)])[0]


ENGINES: dict[str, ShardEngine] = {"ray": ShardEngine(size=lambda: join("--engine ray"), carry_out=_on_ray)}


def engine_named(name: str) -> ShardEngine:
    """The engine of that name; raises `UnknownNameError`."""
    return named("engine", name, ENGINES)
