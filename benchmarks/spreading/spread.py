"""Distribute a run: divide it into shards, let an engine run them, and merge them into one run folder."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import typer

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.discovery import named
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.settings import Settings

from ..merging.folders import merge_folders
from ..run.folder import RunFolder
from . import on_ray
from .shard_task import ShardOutcome, ShardTask, places

CarryOut: TypeAlias = Callable[[Sequence[ShardTask]], list[ShardOutcome]]
_OWN = ("engine", "shards", "output_dir", "display_", "plots", "cost_limit")
_LIMIT = "COST_LIMIT_USD="


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine that runs tasks: how many at once, and how."""

    size: Callable[[], int]
    carry_out: CarryOut


ENGINES: Mapping[str, Engine] = {"ray": Engine(size=on_ray.cluster_size, carry_out=on_ray.carried_out)}


class ShardFailedError(MetaRagError):
    """A shard ended before all its questions were answered."""

    exit_code = 1


def engine_named(name: str) -> Engine:
    """The engine of that name; raises `UnknownNameError`."""
    return named("engine", name, ENGINES)


def spread(
    context: typer.Context,
    engine: Engine,
    *,
    shards: int | None,
    questions: int,
    settings: Settings,
    output_dir: Path,
    plots: bool,
) -> tuple[RunFolder, dict[str, Any]]:
    """Run the command of `context` as shards, and merge them; returns the merged run's folder and summary.

    Each shard has the `settings` of the run, and may spend its part of their cost limit, so that all together stay
    below it. Repeating the command continues an interrupted one with the same number of shards. Raises `InputError` if
    that number differs, and `ShardFailedError`.
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
    if settings.cost_limit_usd is not None:
        settings = settings.model_copy(update={"cost_limit_usd": settings.cost_limit_usd / count})
    outcomes = engine.carry_out(places(folder, Path.cwd(), words, count, settings=settings))
    merged = _merged(outcomes, folder, output_dir, plots=plots)
    shutil.rmtree(folder)
    return merged


def _merged(
    outcomes: Sequence[ShardOutcome], folder: Path, output_dir: Path, *, plots: bool
) -> tuple[RunFolder, dict[str, Any]]:
    """The merged run. A shard that ended with an error may still be complete: all its questions failed."""
    failed = [outcome for outcome in outcomes if outcome.code]
    folders = [outcome.folder for outcome in outcomes if outcome.folder is not None]
    try:
        if len(folders) == len(outcomes):
            return merge_folders(folders, output_dir, plots=plots)
    except InputError:
        if not failed:
            raise
    for outcome in failed:
        complain(f"Shard {outcome.shard}: {outcome.said or f'ended with exit code {outcome.code}'}")
    raise ShardFailedError(
        f"{len(failed)} of {len(outcomes)} shards did not finish. The same command continues them; to start over, "
        f"delete {str(folder)!r} first."
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
