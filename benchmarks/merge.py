"""Merge the shards of a run: `python -m benchmarks.merge --help`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings

from .merging.folders import merge_folders
from .merging.records import join_records
from .recording import Player, Recorder
from .run.benchmarking import benchmark, replayed
from .run.config import Conduct, RunConfig

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


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

    They must be all the shards of one experiment: the same code, data, model, prompts and settings, with no question
    twice or missing. Run folders give a run folder; records give a record (--record FILE) and the folder of its replay.
    """
    are_files = [Path(shard).is_file() for shard in shards]
    if any(are_files) != all(are_files):
        raise InputError("Some of the shards are run folders, others are records; merge one kind at a time.")
    if all(are_files) != (record is not None):
        raise InputError("Give --record FILE with records of all shards, and leave it out with run folders.")
    if record is None:
        folder, summary = merge_folders(shards, output_dir, plots=plots)
        path = folder.path
    else:
        path = _merged_records([Path(shard) for shard in shards], record, output_dir, plots=plots)
        summary = None
    if as_json_:
        print_json({"run": str(path), "record": None if record is None else str(record), "summary": summary})
        return
    say(f"Run folder: {path}")
    if record is not None:
        say(f"Record: {record}")


def _merged_records(paths: list[Path], record: Path, output_dir: Path, *, plots: bool) -> Path:
    """Merge the records, then replay the result, which signs it with its summary."""
    with TemporaryDirectory() as name:
        joined = Path(name) / "joined.jsonl"
        join_records(paths, joined)
        player = Player.read(joined)
        plan = replayed(RunConfig(dataset="", mode="gold", settings=Settings.load()), player, strict=False)
        conduct = Conduct(player=player, recorder=Recorder(path=record), plots=plots)
        return benchmark(plan, conduct, None, output_dir, "none")


if __name__ == "__main__":
    app()
