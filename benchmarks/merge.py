"""Merge the shards of a run: `python -m benchmarks.merge --help`."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class _Shard:
    """One of several runs, with the rows of its table and the ids of the questions that each answered."""

    folder: RunFolder
    run: Mapping[str, Any]
    answered: Mapping[str, Collection[str]]

    @classmethod
    def of(cls, folder: RunFolder) -> "_Shard":
        """Raises `InputError` if the run is not a shard, or has a damaged row."""
        run, rows = folder.config(), folder.rows()
        if run["experiment"].get("shard") is None or "sample" not in run:
            raise InputError(
                f"{str(folder.path)!r} was run without --shard I/N, so it cannot be merged; name only shards."
            )
        require_whole(rows.values(), folder.path / SAMPLES)
        answered = {arm.name: [id_ for id_, row in rows if row == arm.name] for arm in recorded_config(run).arms}
        return cls(folder=folder, run=run, answered=answered)

    @property
    def name(self) -> str:
        """The folder's path."""
        return str(self.folder.path)

    @property
    def place(self) -> tuple[int, int]:
        """The shard's number and the number of shards."""
        return shard_numbers(self.run["experiment"]["shard"])


def merge_folders(runs: Sequence[str], output_dir: Path, *, plots: bool) -> tuple[RunFolder, dict[str, Any]]:
    """Merge the runs of all shards into a new folder; returns it with its summary.

    Raises `InputError` if they are not all the shards of one run, or if one is still running.
    """
    with ExitStack() as stack:
        folders = {folder.path: folder for folder in (RunFolder.named(run, output_dir) for run in runs)}.values()
        for folder in folders:
            stack.enter_context(folder.locked())
        shards = sorted(map(_Shard.of, folders), key=lambda shard: shard.place)
        for shard in shards[1:]:
            _require_same(shards[0], shard)
        _require_each_once(shards)
        _require_complete(shards)
        run = dict(shards[0].run)
        run |= {"experiment": {**run["experiment"], "shard": None}, "merged": [one.folder.path.name for one in shards]}
        resumed = [code for shard in shards for code in shard.run.get("resumed_with", [])]
        if resumed:
            run["resumed_with"] = [code for place, code in enumerate(resumed) if code not in resumed[:place]]
        merged = new_folder(recorded_config(run), output_dir, run)
        for shard in shards:
            for row in shard.folder.rows().values():
                merged.add(dict(row))
        merged.close()
        merged.write_calls(row for shard in shards for _, row in records(shard.folder.calls) if row is not None)
    rows = [row for _, row in sorted(merged.rows().items())]
    return merged, write_results(recorded_config(run), merged, rows, plots=plots)


def _require_same(first: _Shard, shard: _Shard) -> None:
    one, other = first.run, shard.run
    apart = ("shard", "data_file", "aliases_file")
    asked = [name for name in one["experiment"] if name not in apart]
    changed = [
        *(name for name in CODE if one.get(name) != other.get(name)),
        *(["questions"] if one["sample"] != other["sample"] else []),
        *(name for name in asked if one["experiment"][name] != other["experiment"].get(name)),
        *differing(one, other),
    ]
    if changed:
        raise InputError(
            f"{first.name!r} and {shard.name!r} are different experiments: they differ in {', '.join(changed)}; "
            "rerun one of them with the settings of the other."
        )


def _require_each_once(shards: Sequence[_Shard]) -> None:
    counts = {shard.place[1] for shard in shards}
    if len(counts) > 1:
        raise InputError(
            f"The runs were divided into {' and '.join(map(str, sorted(counts)))} shards; merge shards of one division."
        )
    (count,) = counts
    there = Counter(shard.place[0] for shard in shards)
    if twice := [number for number, times in there.items() if times > 1]:
        raise InputError(f"Two of the runs are shard {twice[0]}/{count}; leave one of them out.")
    if missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in there]:
        raise InputError(f"Missing: shard {', '.join(missing)}; run it with --shard {missing[0]}, or name its run too.")


def _require_complete(shards: Sequence[_Shard]) -> None:
    """Check that every question of the sample occurs once in every row of the table."""
    seen: dict[str, str] = {}
    for shard in shards:
        number, count = shard.place
        wanted = len(range(number - 1, shard.run["sample"]["questions"], count))
        for row, ids in shard.answered.items():
            if lacking := wanted - len(ids):
                raise InputError(
                    f"{shard.name!r} lacks {lacking} of {counted(wanted, 'answer')} of {row!r}; continue it with "
                    f"--resume {shard.name}, then merge."
                )
        for id_ in {id_ for ids in shard.answered.values() for id_ in ids}:
            if id_ in seen:
                raise InputError(f"{seen[id_]!r} and {shard.name!r} both answer {id_!r}; leave one of them out.")
            seen[id_] = shard.name
    if sample_digest(list(seen)) != shards[0].run["sample"]["sha256"]:
        raise InputError("The runs answer questions outside their sample; run the shards again.")


if __name__ == "__main__":
    app()
