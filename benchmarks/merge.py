"""Merge the shards of a run: `python -m benchmarks.merge --help`."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import DataFileError, InputError
from meta_agent_rag.journal import records
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from .recording import Recorder, Recording
from .recording.format import arms_from, as_line, last_line, read_lines, write_lines
from .rows.samples import require_whole
from .run.benchmarking import benchmark, new_folder, write_results
from .run.config import RunConfig, RunOptions
from .run.folder import CODE, SAMPLES, RunFolder, differing
from .run.plan import recorded_config, replayed
from .run.provenance import changed_settings
from .run.sampling import sample_digest, shard_numbers

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_OF_THIS_MACHINE = ("shard", "data_file", "aliases_file")
_FOUND_BY_ALL = ("passage", "vectors")
"""Kinds of lines that are the same in every record that has them."""


@app.command()
@reporting
def main(
    shards: Annotated[list[str], typer.Argument(metavar="SHARD...", help="Run folders, or records, of all shards.")],
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With records: where to write the merged record (.jsonl[.gz]).")
    ] = None,
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are read and written.")] = Path(
        "RESULTS"
    ),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True,
    as_json_: Json = False,
    debug: Debug = False,
) -> None:
    """Merge runs made with --shard I/N into one run, with its summary and report.

    They must be all the shards of one experiment: the same code, data, model and settings, with no question
    twice or missing. Run folders give a run folder; records give a record (--record FILE) and the folder of its replay.
    """
    are_files = {Path(shard).is_file() for shard in shards}
    if len(are_files) > 1:
        raise InputError("Some of the shards are run folders, others are records; merge one kind at a time.")
    if (are_files == {True} and record is None) or (are_files == {False} and record is not None):
        raise InputError("Give --record FILE with records of all shards, and leave it out with run folders.")
    summary = None
    if record is None:
        folder, summary = merge_folders(shards, output_dir, plots=plots)
        path = folder.path
    else:
        path = _merge_records([Path(shard) for shard in shards], record, output_dir, plots=plots)
    if as_json_:
        print_json({"run": str(path), "record": None if record is None else str(record), "summary": summary})
        return
    say(f"Run folder: {path}")
    if record is not None:
        say(f"Record: {record}")


@dataclass(frozen=True, kw_only=True)
class ShardRun:
    """One of several runs: `run` is its `config.json`, or the first line of its record.

    `answered` are the ids of its questions by row of the table, `rows` the names of all rows.
    """

    name: str
    run: Mapping[str, Any]
    rows: Sequence[str]
    answered: Mapping[str, Collection[str]]

    @property
    def place(self) -> tuple[int, int]:
        """The shard's number and the number of shards; raises `InputError` if the run is not a shard."""
        shard = self.run["experiment"].get("shard")
        if shard is None or "sample" not in self.run:
            raise InputError(f"{self.name!r} was run without --shard I/N, so it cannot be merged; name only shards.")
        return shard_numbers(shard)

    @property
    def experiment(self) -> dict[str, Any]:
        """What all shards of a run have in common."""
        return {name: value for name, value in self.run["experiment"].items() if name not in _OF_THIS_MACHINE}


def merge_folders(runs: Sequence[str], output_dir: Path, *, plots: bool) -> tuple[RunFolder, dict[str, Any]]:
    """Merge the runs of all shards into a new folder; returns it with its summary.

    Raises `InputError` if they are not all the shards of one run, or if one is still running.
    """
    with ExitStack() as stack:
        folders = {str(folder.path): folder for folder in (RunFolder.named(run, output_dir) for run in runs)}
        for folder in folders.values():
            stack.enter_context(folder.locked())
            require_whole(folder.rows().values(), folder.path / SAMPLES)
        shards = _ordered([_shard_of_folder(folder) for folder in folders.values()])
        run = _as_one(shards)
        run["merged"] = [Path(shard.name).name for shard in shards]
        if resumed := [code for shard in shards for code in shard.run.get("resumed_with", [])]:
            run["resumed_with"] = [code for place, code in enumerate(resumed) if code not in resumed[:place]]
        merged = new_folder(recorded_config(run), output_dir, run)
        own = [folders[shard.name] for shard in shards]
        for row in (row for folder in own for row in folder.rows().values()):
            merged.add(dict(row))
        merged.close()
        merged.write_calls(row for folder in own for _, row in records(folder.calls) if row is not None)
    rows = [row for _, row in sorted(merged.rows().items())]
    summary = write_results(
        recorded_config(run),
        RunOptions(plots=plots),
        merged,
        rows,
        deficits=run["deficits"],
        n=run["sample"]["questions"],
        pooled=run["sample"]["pooled"],
    )
    return merged, summary


def _shard_of_folder(folder: RunFolder) -> ShardRun:
    run = folder.config()
    answered: dict[str, list[str]] = {}
    for id_, row in folder.rows():
        answered.setdefault(row, []).append(id_)
    names = [arm.name for arm in recorded_config(run).arms]
    return ShardRun(name=str(folder.path), run=run, rows=names, answered=answered)


def _merge_records(paths: Sequence[Path], record: Path, output_dir: Path, *, plots: bool) -> Path:
    """Merge the records, then replay the result, which signs it with its summary."""
    shards = _ordered([_shard_of_record(path) for path in paths])
    files = [Path(shard.name) for shard in shards]
    with TemporaryDirectory() as name:
        joined = Path(name) / "joined.jsonl"
        lines = chain([("run", _as_one(shards))], _questions(files), _rest(files))
        write_lines(joined, chain((as_line({kind: content}) for kind, content in lines), [last_line("")]))
        recording = Recording.read(joined)
        plan = replayed(RunConfig(dataset="", mode="gold", settings=Settings.load()), recording, strict=False)
        options = RunOptions(recording=recording, recorder=Recorder(path=record), plots=plots)
        return benchmark(plan, options, None, output_dir, "none")


def _shard_of_record(path: Path) -> ShardRun:
    lines = read_lines(path)
    none: tuple[str, dict[str, Any]] = ("", {})
    kind, run = next(lines, none)
    if kind != "run" or "arms" not in run:
        raise DataFileError(f"{path.name} is not a record with answers; record the shard again with --record.")
    answered: dict[str, list[str]] = {}
    for kind, content in lines:
        if kind == "row":
            answered.setdefault(content["method"], []).append(content["id"])
    return ShardRun(name=str(path), run=run, rows=[arm.name for arm in arms_from(run)], answered=answered)


def _questions(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """In the order of the sample: the first of each shard, then the second of each, and so on."""
    each = [[line for line in read_lines(file) if line[0] == "question"] for file in files]
    return (line for turn in zip_longest(*each) for line in turn if line is not None)


def _rest(files: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    seen: set[bytes] = set()
    for file in files:
        for kind, content in read_lines(file):
            if kind in _FOUND_BY_ALL:
                line = as_line({kind: content})
                if line in seen:
                    continue
                seen.add(line)
            if kind not in ("run", "question", "summary"):
                yield kind, content


def _as_one(shards: Sequence[ShardRun]) -> dict[str, Any]:
    run = dict(shards[0].run)
    return {**run, "experiment": {**run["experiment"], "shard": None}}


def _ordered(shards: Sequence[ShardRun]) -> list[ShardRun]:
    """The shards of one run, in order; raises `InputError` unless they are the same experiment, each once and whole."""
    found = sorted(shards, key=lambda shard: shard.place)
    for shard in found[1:]:
        _require_same(found[0], shard)
    _require_each_once(found)
    _require_complete(found)
    return found


def _require_same(first: ShardRun, shard: ShardRun) -> None:
    changed = [
        *(name for name in CODE if first.run.get(name) != shard.run.get(name)),
        *(["questions"] if first.run["sample"] != shard.run["sample"] else []),
        *(name for name, value in first.experiment.items() if shard.experiment.get(name) != value),
        *differing(first.run, shard.run),
        *(name.upper() for name in changed_settings(first.run["settings"], shard.run["settings"])),
    ]
    if changed:
        raise InputError(
            f"{first.name!r} and {shard.name!r} are different experiments: they differ in {', '.join(changed)}; "
            "rerun one of them with the settings of the other."
        )


def _require_each_once(shards: Sequence[ShardRun]) -> None:
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


def _require_complete(shards: Sequence[ShardRun]) -> None:
    """Check that every question of the sample occurs once in every row of the table."""
    seen: dict[str, str] = {}
    for shard in shards:
        number, count = shard.place
        wanted = len(range(number - 1, shard.run["sample"]["questions"], count))
        for row in shard.rows:
            if lacking := wanted - len(shard.answered.get(row, ())):
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
