"""Pack a run folder into one small file for the demo: rows, summary and plots, without the calls.

    python -m benchmarks.tools.pack RESULTS/RUN run.zip --record run.jsonl.gz

The zips in `benchmarks/recorded`, which the demo opens, are packed replays of the records beside them.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from meta_agent_rag.cli.shared.command import reporting, say
from meta_agent_rag.demo.run_files import PASSAGES
from meta_agent_rag.retrieval.passage import passages_of

from ..recording import Recording
from ..run.folder import CONFIG, SAMPLES, SUMMARY

_OF_A_MACHINE = ("_dir", "_path", "_url", "_key", "_token")
_COLOURS = 64
_LONG_AGO = (1980, 1, 1, 0, 0, 0)

app = typer.Typer(add_completion=False)


@app.command()
@reporting
def main(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    file: Annotated[Path, typer.Argument(help="The zip to write.")],
    record: Annotated[Path | None, typer.Option(help="The run's record, for the texts of its evidence.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Pack a run for the demo; identical runs give identical files."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in packed(run, record):
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, zipfile.ZIP_DEFLATED, 9)
    say(f"{str(file)!r}: {file.stat().st_size / 1024:.0f} KB.")


def packed(run: Path, record: Path | None = None) -> Iterator[tuple[str, bytes]]:
    """The files of a packed run with their contents; the configuration without details of this machine.

    Raises `DataFileError` if the file is not a record.
    """
    config = json.loads((run / CONFIG).read_bytes())
    settings = {name: value for name, value in config["settings"].items() if not name.endswith(_OF_A_MACHINE)}
    experiment = {
        name: Path(value).name if name.endswith("_file") and value else value
        for name, value in config["experiment"].items()
    }
    held = {**config, "experiment": experiment, "settings": settings}
    yield CONFIG, json.dumps(held, ensure_ascii=False, indent=2).encode()
    for name in (SAMPLES, SUMMARY):
        yield name, (run / name).read_bytes()
    if record is not None:
        yield PASSAGES, _passages(run, record)
    for plot in sorted((run / "plots").glob("*.png")):
        with io.BytesIO() as smaller, Image.open(plot) as image:
            image.convert("RGB").quantize(_COLOURS).save(smaller, "PNG", optimize=True)
            yield f"plots/{plot.name}", smaller.getvalue()


def _passages(run: Path, record: Path) -> bytes:
    """The passages that the answers were based on, one per line, from the questions of the record."""
    rows = [json.loads(line) for line in (run / SAMPLES).read_bytes().splitlines()]
    rounds = [round_ for row in rows for round_ in row["rounds"]]
    used = {id_ for round_ in rounds for name in ("evidence_ids", "searched_ids") for id_ in round_.get(name, ())}
    paragraphs = (paragraph for question in Recording.read(record).questions for paragraph in question.paragraphs)
    found = {passage.id: passage for passage in passages_of(paragraphs) if passage.id in used}
    lines = ({"title": passage.title, "text": passage.text} for passage in found.values())
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


if __name__ == "__main__":
    app()
