"""Merge the shards of a run: `python -m benchmarks.merge --help`."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.journal import records
from meta_agent_rag.wording import counted

from .rows.samples import require_whole
from .run.benchmarking import new_folder, write_results
from .run.folder import CODE, SAMPLES, RunFolder
from .run.plan import recorded_config
from .run.provenance import differing
from .run.sampling import sample_digest, shard_numbers

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(
    shards: Annotated[list[str], typer.Argument(metavar="SHARD...", help="Run folders of all shards.")],
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are read and written.")] = Path(
        "RESULTS"
    ),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Merge runs made with --shard I/N into one run, with its summary and report.

    They must be all the shards of one experiment: the same code, data, model and settings, with no question
    twice or missing.
    """
    folder, summary = merge_folders(shards, output_dir, plots=plots)
    if as_json:
        print_json({"run": str(folder.path), "summary": summary})
    else:
        say(f"Run folder: {folder.path}")


def merge_folders(runs: Sequence[str], output_dir: Path, *, plots: bool) -> tuple[RunFolder, dict[str, Any]]:
    """Merge the runs of all shards into a new folder; returns it with its summary.

    Raises `InputError` if they are not all the shards of one run, or if one is still running.
    """
    with ExitStack() as stack:
        folders = list({folder.path: folder for folder in (RunFolder.named(run, output_dir) for run in runs)}.values())
        for folder in folders:
            stack.enter_context(folder.locked())
        configs = [folder.config() for folder in folders]
        _require_shards(folders, configs)
        _require_complete(folders, configs)
        run = {**configs[0], "experiment": {**configs[0]["experiment"], "shard": None}}
        run["merged"] = [folder.path.name for folder in folders]
        limits = [config["settings"].get("cost_limit_usd") for config in configs]
        known = [limit for limit in limits if limit is not None]
        whole = sum(known) if len(known) == len(limits) else None
        run["settings"] = {**run["settings"], "cost_limit_usd": whole}
        codes = [code for config in configs for code in config.get("resumed_with", [])]
        if codes:
            run["resumed_with"] = [code for place, code in enumerate(codes) if code not in codes[:place]]
        merged = new_folder(recorded_config(run), output_dir, run)
        for folder in folders:
            for row in folder.rows().values():
                merged.add(dict(row))
        merged.close()
        merged.write_calls(row for folder in folders for _, row in records(folder.calls) if row is not None)
    rows = [row for _, row in sorted(merged.rows().items())]
    return merged, write_results(recorded_config(run), merged, rows, plots=plots)


def _require_shards(folders: Sequence[RunFolder], configs: Sequence[dict[str, Any]]) -> None:
    """Check that runs are all the shards of one experiment, each once."""
    first = configs[0]
    asked = [name for name in first["experiment"] if name not in ("shard", "data_file", "aliases_file")]
    for folder, config in zip(folders, configs, strict=True):
        if config["experiment"].get("shard") is None:
            raise InputError(
                f"{str(folder.path)!r} was run without --shard I/N, so it cannot be merged; name only shards."
            )
        changed = [
            *(name for name in CODE if first.get(name) != config.get(name)),
            *(["questions"] if first["sample"] != config["sample"] else []),
            *(name for name in asked if first["experiment"][name] != config["experiment"].get(name)),
            *differing(first, config),
        ]
        if changed:
            raise InputError(
                f"{str(folders[0].path)!r} and {str(folder.path)!r} are different experiments: they differ in "
                f"{', '.join(changed)}; rerun one of them with the settings of the other."
            )
    shards = Counter(shard_numbers(config["experiment"]["shard"]) for config in configs)
    counts = sorted({count for _, count in shards})
    if len(counts) > 1:
        raise InputError(
            f"The runs were divided into {' and '.join(map(str, counts))} shards; merge shards of one division."
        )
    for number in range(1, counts[0] + 1):
        shard, times = f"{number}/{counts[0]}", shards[number, counts[0]]
        if times > 1:
            raise InputError(f"Two of the runs are shard {shard}; leave one of them out.")
        if not times:
            raise InputError(f"Missing: shard {shard}; run it with --shard {shard}, or name its run too.")


def _require_complete(folders: Sequence[RunFolder], configs: Sequence[dict[str, Any]]) -> None:
    """Check that every question of the sample occurs once in every row of the table."""
    seen: dict[str, RunFolder] = {}
    for folder, config in zip(folders, configs, strict=True):
        rows = folder.rows()
        require_whole(rows.values(), folder.path / SAMPLES)
        number, count = shard_numbers(config["experiment"]["shard"])
        wanted = len(range(number - 1, config["sample"]["questions"], count))
        answered = Counter(method for _, method in rows)
        for arm in recorded_config(config).arms:
            if lacking := wanted - answered[arm.name]:
                raise InputError(
                    f"{str(folder.path)!r} lacks {lacking} of {counted(wanted, 'answer')} of {arm.name!r}; continue it "
                    f"with --resume {folder.path}, then merge."
                )
        for id_ in {id_ for id_, _ in rows}:
            if id_ in seen:
                raise InputError(
                    f"{str(seen[id_].path)!r} and {str(folder.path)!r} both answer {id_!r}; leave one of them out."
                )
            seen[id_] = folder
    if sample_digest(list(seen)) != configs[0]["sample"]["sha256"]:
        raise InputError("The runs answer questions outside their sample; run the shards again.")


if __name__ == "__main__":
    app()
