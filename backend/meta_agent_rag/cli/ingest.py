"""`marag ingest`: adds files and folders to a corpus."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..extras import require
from ..wording import counted, unbroken
from .shared.command import Assignments, Json, command, complain, console, plain, print_json, run, settings_of

if TYPE_CHECKING:
    from ..ingestion.sources import IngestReport, Status
    from ..retrieval.corpus.editing import Progress
    from ..settings import Settings

_SHOWN: "tuple[Status, ...]" = ("added", "replaced", "moved", "unchanged", "skipped", "pruned")
_COUNTED: "tuple[Status, ...]" = (*_SHOWN, "gone")
_COLOURS = {"skipped": "yellow", "gone": "yellow", "pruned": "magenta"}
_STOPPED = 130


@command()
def ingest(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, and folders, which are read recursively.")
    ],
    corpus: Annotated[str, typer.Option(help="The corpus to add to; created if missing.")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files no longer exist in the folders given as PATH.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Rebuild the corpus from PATH... only; the old one is kept until the new one is complete."
        ),
    ] = False,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Encode on the machines of a cluster: ray.")
    ] = None,
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Add PDF, office files, EPUB, HTML, Markdown, text and passages (.jsonl, also .gz) to a corpus.

    The type of other files is detected from their content, not their name. Unchanged files are skipped; changed ones
    replace their own passages. Exit code 1: a file was broken and skipped, the others were ingested.
    """
    if "" in paths:
        raise InputError("One PATH is empty; give a file or folder, or `.` for the current folder.")
    require("ingest", "`marag ingest`")
    settings = settings_of(set_)
    try:
        report = run(_ingest(settings, [Path(path) for path in paths], corpus, prune, rebuild, engine, not json_))
    except KeyboardInterrupt:
        complain("Stopped. Finished work is kept; run the same command to continue.")
        raise typer.Exit(_STOPPED) from None
    if json_:
        print_json(_as_json(report))
    else:
        _show(report)
    if report.failed:
        raise typer.Exit(1)


async def _ingest(
    settings: "Settings", paths: list[Path], corpus: str, prune: bool, rebuild: bool, engine: str | None, visible: bool
) -> "IngestReport":
    import asyncio

    from ..ingestion.pipeline import files_for
    from ..ingestion.pipeline import ingest as ingest_files
    from ..retrieval.open_retriever import open_encoder

    await asyncio.to_thread(files_for, settings, paths, corpus, prune=prune)  # before a model is loaded
    encoder = await asyncio.to_thread(open_encoder, settings, engine)
    with _progress_bar(visible) as on_progress:
        return await ingest_files(
            settings,
            paths,
            corpus,
            encoder=encoder,
            prune=prune,
            rebuild=rebuild,
            on_progress=on_progress,
        )


@contextmanager
def _progress_bar(visible: bool) -> "Iterator[Progress]":
    """A progress bar on stderr for the passages; none without a terminal."""
    from rich import progress
    from rich.console import Console

    screen = Console(stderr=True)
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    shown = visible and screen.is_terminal
    with progress.Progress("passages", *columns, console=screen, transient=True, disable=not shown) as bar:
        task = bar.add_task("passages", total=None)
        yield lambda done, wanted: bar.update(task, completed=done, total=wanted)


def _show(report: "IngestReport") -> None:
    screen = console()
    for outcome in report.outcomes:
        if outcome.status == "unchanged" and outcome.reason is None:
            continue
        colour = _COLOURS.get(outcome.status, "red" if outcome.broken else "green")
        count = f" ({counted(outcome.passages, 'passage')})" if outcome.status in {"added", "replaced", "moved"} else ""
        reason = f": {outcome.reason}" if outcome.reason else ""
        screen.print(f"[{colour}]{outcome.status:>9}[/]  {plain(unbroken(outcome.source))}{count}{plain(reason)}")
    counts = ", ".join(f"{report.counts[status]} {status}" for status in _COUNTED if report.counts[status])
    speed = f", {report.encoded / report.seconds:.0f}/s" if report.encoded and report.seconds else ""
    screen.print(
        f"[bold]{plain(report.corpus)}[/]: {counts or 'nothing to do'}; "
        f"{counted(report.encoded, 'passage')} encoded in {report.seconds:.1f} s{speed}"
    )


def _as_json(report: "IngestReport") -> dict[str, Any]:
    return {
        "corpus": report.corpus,
        "counts": {status: report.counts[status] for status in _COUNTED},
        "failed": report.failed,
        "encoded": report.encoded,
        "seconds": round(report.seconds, 3),
        "files": [asdict(outcome) for outcome in report.outcomes],
    }
