"""Distribute a run: divide it into shards, let an engine run them, and merge them into one run folder."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.discovery import named
from meta_agent_rag.errors import CostLimitError, InputError, MetaRagError
from meta_agent_rag.settings import Settings

from ..merging.folders import merge_folders
from ..run.display import Silent
from ..run.folder import CONFIG, RunFolder
from . import on_ray
from .limit import CarryOut, carried_out
from .progress import shown
from .shard_task import ShardOutcome, paid_usd, places

_OWN = ("engine", "shards", "output_dir", "display_", "plots", "cost_limit")
_LIMIT = "COST_LIMIT_USD="


@dataclass(frozen=True, kw_only=True)
class ShardEngine:
    """An engine that runs tasks: how many at once, and how."""

    size: Callable[[], int]
    carry_out: CarryOut


ENGINES: Mapping[str, ShardEngine] = {"ray": ShardEngine(size=on_ray.cluster_size, carry_out=on_ray.carried_out)}


class ShardFailedError(MetaRagError):
    """A shard ended before all its questions were answered."""

    exit_code = 1


def engine_named(name: str) -> ShardEngine:
    """The engine of that name; raises `UnknownNameError`."""
    return named("engine", name, ENGINES)


def spread(
    context: typer.Context,
    engine: ShardEngine,
    *,
    shards: int | None,
    questions: int,
    settings: Settings,
    output_dir: Path,
    plots: bool,
    figures: Silent | None = None,
) -> tuple[RunFolder, dict[str, Any]]:
    """Run the command of `context` as shards, and merge them; returns the merged run's folder and summary.

    Each shard has the `settings` of the run; their cost limit holds for all together. With `figures`, a line for each
    shard that ends shows them. Repeating the command continues an interrupted one with the same number of shards.
    Raises `InputError` if that number differs, `ShardFailedError`, and `CostLimitError`.
    """
    words = command_line(context, without=_OWN)
    folder = output_dir.absolute() / f".spread-{_digest(words)}"
    size, begun = engine.size(), _shards_in(folder)
    if begun is not None and shards not in (None, begun):
        raise InputError(
            f"An interrupted run of this command has {begun} shards; give --shards {begun} to continue it, or delete "
            f"{str(folder)!r} to start over."
        )
    count = begun or min(questions, shards or size)
    tasks, limit = places(folder, Path.cwd(), words, count, settings=settings), settings.cost_limit_usd
    carry_out = engine.carry_out if figures is None else shown(engine.carry_out, count, figures)
    outcomes = carried_out(tasks, carry_out, limit, paid_usd)
    merged = _merged(outcomes, output_dir, plots=plots)
    if merged is None:
        raise _unfinished(outcomes, folder, sum(map(paid_usd, tasks), Decimal(0)), limit)
    config = merged[0].config()
    merged[0].write_json(CONFIG, {**config, "settings": {**config["settings"], "cost_limit_usd": limit}})
    shutil.rmtree(folder)
    return merged


def _merged(
    outcomes: Sequence[ShardOutcome], output_dir: Path, *, plots: bool
) -> tuple[RunFolder, dict[str, Any]] | None:
    """The merged run; `None` if a shard did not finish.

    A shard that ended with an error may still be complete: all its questions failed.
    """
    folders = [outcome.folder for outcome in outcomes if outcome.folder is not None]
    try:
        if len(folders) == len(outcomes):
            return merge_folders(folders, output_dir, plots=plots)
    except InputError:
        if not any(outcome.code for outcome in outcomes):
            raise
    return None


def _unfinished(outcomes: Sequence[ShardOutcome], folder: Path, spent: Decimal, limit: float | None) -> MetaRagError:
    """The error of a run that is incomplete, once the reasons of single shards are reported."""
    failed = [outcome for outcome in outcomes if outcome.code]
    for outcome in failed:
        if not outcome.at_limit:
            complain(f"Shard {outcome.shard}: {outcome.said or f'ended with exit code {outcome.code}'}")
    failures = f"{len(failed)} of {len(outcomes)} shards did not finish."
    start_over = f"to start over, delete {str(folder)!r} first."
    if limit is None or not any(outcome.at_limit for outcome in failed):
        return ShardFailedError(f"{failures} The same command continues them; {start_over}")
    return CostLimitError(
        f"{failures} The run has spent {spent:.6f} USD of its limit of {limit} USD, and the next call could cost more "
        f"than is left. The same command with a higher cost limit continues them; {start_over}"
    )


def _digest(words: Sequence[str]) -> str:
    """A digest of the command, independent of its cost limit."""
    wanted = [word for word in words if not word.upper().startswith(_LIMIT)]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:12]


def _shards_in(folder: Path) -> int | None:
    """The number of shards of an interrupted run; `None` if there is none."""
    counts = {int(place.name.partition("-of-")[2]) for place in folder.glob("*-of-*")}
    return max(counts, default=None)


def command_line(context: typer.Context, *, without: Sequence[str]) -> list[str]:
    """The options given to a command, as arguments."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in without:
            continue
        flag, value = parameter.opts[0], context.params[name]
        if isinstance(value, bool):
            words.append(flag if value else parameter.secondary_opts[0])
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [flag, str(one)]
    return words
