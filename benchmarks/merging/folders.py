"""Run folders of all shards, merged into the folder of one run."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from meta_agent_rag.journal import records

from ..rows.shape import require_whole
from ..run.config import Conduct, RunConfig
from ..run.folder import SAMPLES, RunFolder
from ..run.provenance import as_begun, recorded_settings
from ..run.writing import write_results
from .shards import Shard, ordered


def merge_folders(runs: Sequence[str], output_dir: Path, *, plots: bool) -> tuple[RunFolder, dict[str, Any]]:
    """Merge the runs of all shards into a new folder; returns it with its summary.

    Raises `InputError` if they are not all the shards of one run, or if one is still running.
    """
    with ExitStack() as stack:
        folders = {str(folder.path): folder for folder in (RunFolder.resume(run, output_dir) for run in runs)}
        for folder in folders.values():
            stack.enter_context(folder.locked())
            require_whole(folder.rows().values(), folder.path / SAMPLES)
        shards = ordered([_shard(folder) for folder in folders.values()])
        merged = _joined([folders[shard.name] for shard in shards], shards, output_dir)
    return merged, _written(merged, plots=plots)


def _shard(folder: RunFolder) -> Shard:
    run = folder.config()
    answered: dict[str, list[str]] = {}
    for id_, row in folder.rows():
        answered.setdefault(row, []).append(id_)
    names = [arm.name for arm in recorded_config(run).arms]
    return Shard(name=str(folder.path), run=run, rows=names, answered=answered)


def recorded_config(run: Mapping[str, Any]) -> RunConfig:
    """The configuration in a `config.json`, without keys and addresses."""
    experiment = run["experiment"]
    empty = RunConfig(dataset=experiment["dataset"], mode=experiment["mode"], settings=recorded_settings(run))
    return replace(as_begun(empty, experiment), model_words=run.get("model_words", ""), recorded=run)


def _joined(folders: Sequence[RunFolder], shards: Sequence[Shard], output_dir: Path) -> RunFolder:
    run = dict(shards[0].run)
    run["experiment"] = {**run["experiment"], "shard": None}
    run["merged"] = [Path(shard.name).name for shard in shards]
    if resumed := [code for shard in shards for code in shard.run.get("resumed_with", [])]:
        run["resumed_with"] = [code for place, code in enumerate(resumed) if code not in resumed[:place]]
    experiment = run["experiment"]
    merged = RunFolder.create(
        output_dir, at=datetime.now(UTC), dataset=experiment["dataset"], mode=experiment["mode"], config=run
    )
    for folder in folders:
        for row in folder.rows().values():
            merged.add(dict(row))
    merged.close()
    merged.write_calls(row for folder in folders for _, row in records(folder.calls) if row is not None)
    return merged


def _written(merged: RunFolder, *, plots: bool) -> dict[str, Any]:
    run = merged.config()
    own = {name for digests in run.get("rows", {}).values() for name in digests.get("deficits", {})}
    rows = sorted(merged.rows().items())
    return write_results(
        recorded_config(run),
        Conduct(plots=plots),
        merged,
        [row for _, row in rows],
        deficits=sorted({*run["deficits"], *own}),
        n=run["sample"]["questions"],
        pooled=run["sample"]["pooled"],
    )
