"""Spreads a run: cuts it into shards, has an engine carry them out, and merges them into one run folder."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import typer

from meta_agent_rag.cli.shared.command import complain
from meta_agent_rag.errors import InputError, MetaRagError, UnknownNameError

from ..merging.folders import merge_folders
from . import on_ray
from .shard_task import ShardOutcome, ShardTask, places

CarryOut: TypeAlias = Callable[[Sequence[ShardTask]], list[ShardOutcome]]
_OWN = ("engine", "shards", "output_dir", "display_", "plots", "cost_limit")
_REFUSED = ("shard", "resume", "record", "replay", "dry_run", "probe")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What carries out tasks: how many at once, and the carrying out."""

    size: Callable[[], int]
    carry_out: CarryOut


ENGINES: Mapping[str, Engine] = {"ray": Engine(size=on_ray.cluster_size, carry_out=on_ray.carried_out)}


class ShardFailedError(MetaRagError):
    """A shard ended before all its questions were answered."""

    exit_code = 1


def spread(
    context: typer.Context,
    engine: str,
    *,
    shards: int | None,
    questions: int,
    cost_limit: float | None,
    output_dir: Path,
    plots: bool,
) -> Path:
    """Carry out the command of `context` as shards of `engine`, and merge them; returns the folder of the one run.

    Each shard may cost its part of `cost_limit`, so that all together stay below it. The same command again takes up
    what an earlier one left. Raises `InputError` for options that a spread run cannot have, and `ShardFailedError`.
    """
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, list(ENGINES))
    given = command_line(context, without=_OWN)
    chosen = ENGINES[engine]
    count = min(questions, shards or chosen.size())
    if shards is not None:
        chosen.size()
    words = given if cost_limit is None else [*given, "--cost-limit", repr(cost_limit / count)]
    digest = hashlib.sha256(json.dumps([given, count]).encode()).hexdigest()[:12]
    folder = output_dir.absolute() / f".spread-{digest}"
    outcomes = chosen.carry_out(places(folder, Path.cwd(), words, count))
    failed = [outcome for outcome in outcomes if outcome.code or outcome.folder is None]
    for outcome in failed:
        complain(f"Shard {outcome.shard}: {outcome.said or f'ended with exit code {outcome.code}'}")
    if failed:
        raise ShardFailedError(
            f"{len(failed)} of {count} shards did not end; the same command again continues them and keeps the others."
        )
    merged, _ = merge_folders([outcome.folder or "" for outcome in outcomes], output_dir, plots=plots)
    shutil.rmtree(folder)
    return merged.path


def command_line(context: typer.Context, *, without: Sequence[str]) -> list[str]:
    """The options that a command was given, as words; raises `InputError` for those that no shard can have."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in without:
            continue
        flag = parameter.opts[0]
        if name in _REFUSED:
            raise InputError(f"{flag} cannot be combined with --engine; leave one of them out.")
        value = context.params[name]
        if isinstance(value, bool):
            words.append(flag if value else parameter.secondary_opts[0])
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [flag, str(one)]
    return words
