"""Score predictions of other systems in our table: `python -m benchmarks.import --help`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, complain, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, discover, load_questions
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from .importing.files import imported
from .importing.table import Table, write_table
from .option_groups import grouped
from .rows.past_run import past_run
from .tables import with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class SystemOptions:
    """The systems whose predictions are scored."""

    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The system's name, once per file; default: the file's name."),
    ] = None
    schema: Annotated[str | None, typer.Option(help="The schema of the files; default: detected for each file.")] = None
    beside: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="One of our runs on the same data, for the same table."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The questions that the predictions answer."""

    data_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The questions, instead of the hub's.")] = None
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None
    aliases: Annotated[Path | None, typer.Option(metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How the table is computed, written and shown."""

    seed: Annotated[int, typer.Option(min=0, help="Seed of the confidence intervals.")] = 42
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are read and written.")] = Path(
        "RESULTS"
    )
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True
    as_json_: Json = False
    debug: Debug = False


@app.command()
@reporting
@grouped
def main(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Predictions, one file per system.")],
    dataset: Annotated[str, typer.Option(help="The data set that the predictions are for.")],
    systems: SystemOptions,
    data: DataOptions,
    output: OutputOptions,
) -> None:
    """Score predictions of other systems with our scorer, intervals and paired tests, beside one of our runs.

    Supported are FlashRAG's, MOTHRAG's and HippoRAG's files, HotpotQA's official predictions, {id: answer}, and rows
    of {"id" or "question", "prediction"}. The table covers the questions that all rows have.
    """
    names = systems.name or [file.name.partition(".")[0] for file in files]
    if len(names) != len(files):
        raise InputError(f"{len(files)} files have {len(names)} names; give --name once for each, in their order.")
    settings = Settings.load()
    loaded = load_questions(
        dataset,
        data_file=data.data_file,
        aliases_file=data.aliases,
        registry=discover(settings.datasets_dir),
        access=HubAccess(token=settings.hf_token, revision=data.revision),
    )
    predictions = [
        imported(file, loaded.questions, name=called, schema=systems.schema)
        for file, called in zip(files, names, strict=True)
    ]
    run = None if systems.beside is None else past_run(systems.beside, output.output_dir)
    table = Table(dataset=dataset, loaded=loaded, systems=predictions, beside=run, seed=output.seed)
    folder, summary = write_table(table, output.output_dir, plots=output.plots)
    if output.as_json_:
        print_json({"run": str(folder.path), "summary": summary})
        return
    for system in predictions:
        other = f", {system.unknown} for other questions left out" if system.unknown else ""
        say(f"{system.name}: {len(system.predictions)} predictions ({system.schema}){other}")
    for row, figures in summary["methods"].items():
        scores = "  ".join(
            f"{one.upper()} {with_interval(figures[one], figures[f'{one}_ci95'])}" for one in ("em", "f1")
        )
        say(f"  {row}: {scores}")
    say(f"Over {summary['n']} questions. Run folder: {folder.path}")
    largest = max(predictions, key=lambda system: len(system.predictions))
    if (left_out := len(largest.predictions) - summary["n"]) > 0:
        complain(
            f"Only {counted(summary['n'], 'question')} in all rows: {counted(left_out, 'answer')} of {largest.name} "
            "left out; import a file alone for its figures over all of its questions."
        )


if __name__ == "__main__":
    app()
