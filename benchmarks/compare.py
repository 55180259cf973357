"""Compare two methods, runs or prediction files, question by question: `python -m benchmarks.compare --help`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, discover, load_questions
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings

from .comparing.comparison import compare
from .comparing.sides import Side, file_side, pooled, run_side
from .comparing.words import as_json, markdown, save_plot, show
from .option_groups import grouped
from .rows.past_run import PastRun, past_run

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_DEFAULT_DATASET = "hotpotqa"


@dataclass(frozen=True, kw_only=True)
class SideOptions:
    """The methods to compare, and where their runs are."""

    method_a: Annotated[str | None, typer.Option(help="The method of A, if its run has several.")] = None
    method_b: Annotated[str | None, typer.Option(help="The method of B, if its run has several.")] = None
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN", help="With one run A: another run of the same two methods over other questions; repeatable."
        ),
    ] = None
    output_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("RESULTS")


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The questions that prediction files answer."""

    data_file: Annotated[Path | None, typer.Option(help="The questions of the prediction files.")] = None
    dataset: Annotated[
        str | None, typer.Option(help=f"Their data set; with --data-file, by default the run's or {_DEFAULT_DATASET}.")
    ] = None
    aliases: Annotated[Path | None, typer.Option(help="2WikiMultiHopQA's id_aliases.json.")] = None
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None

    def require_none(self, *runs: str) -> None:
        """Refuse options that runs would ignore, because they contain their own questions."""
        given = {"--data-file": self.data_file, "--dataset": self.dataset, "--aliases": self.aliases}
        given["--revision"] = self.revision
        for flag, value in given.items():
            if value is not None and not any(Path(run).is_file() for run in runs):
                have = "is a run with its" if len(runs) == 1 else "are runs with their"
                raise InputError(
                    f"{flag} {str(value)!r} applies to files of predictions, but {' and '.join(map(repr, runs))} "
                    f"{have} own questions; leave {flag} out."
                )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How the comparison is computed and shown."""

    seed: Annotated[int, typer.Option(min=0, help="Seed of confidence intervals and permutations.")] = 42
    count_failures: Annotated[
        bool,
        typer.Option("--count-failures", help="Include questions that a side failed to answer, scored 0."),
    ] = False
    examples: Annotated[int, typer.Option(min=0, help="Number of questions won and lost to show.")] = 5
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown, with every question.")
    ] = None
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the differences as PNG or SVG.")] = None
    as_json_: Json = False
    debug: Debug = False


@app.command()
@reporting
@grouped
def main(
    first: Annotated[str, typer.Argument(metavar="A", help="A run folder (path or name), or a file of predictions.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The other side; if omitted, two methods of A are compared.")
    ] = None,
    *,
    sides: SideOptions,
    data: DataOptions,
    output: OutputOptions,
) -> None:
    """Compare B with A on the questions that both answered, and test the difference for significance.

    Questions that a side failed to answer are left out. A file of predictions is of any schema that `import` reads.
    """
    results = sides.output_dir
    a, b = _sides(first, second, (sides.method_a, sides.method_b), data, results)
    if sides.pool:
        if second is not None:
            raise InputError("--pool compares two methods within runs; leave B out.")
        both = [(a, b), *(_of_one_run(run, (a.name, b.name), results) for run in sides.pool)]
        a, b = pooled([one for one, _ in both]), pooled([other for _, other in both])
    found = compare(a, b, seed=output.seed, count_failures=output.count_failures)
    if output.out is not None:
        output.out.write_text(markdown(found), encoding="utf-8")
    if output.plot is not None:
        save_plot(found, output.plot)
    if output.as_json_:
        print_json(as_json(found))
        return
    show(found, examples=output.examples)
    if written := [str(path) for path in (output.out, output.plot) if path is not None]:
        say(f"\nWritten: {' and '.join(written)}")


def _sides(
    first: str, second: str | None, methods: tuple[str | None, str | None], data: DataOptions, results: Path
) -> tuple[Side, Side]:
    if second is None:
        data.require_none(first)
        return _of_one_run(first, methods, results)
    sources = [_source(one, results) for one in (first, second)]
    if all(isinstance(source, PastRun) for source in sources):
        data.require_none(first, second)
    run = next((source for source in sources if isinstance(source, PastRun)), None)
    name = data.dataset or (_DEFAULT_DATASET if run is None else run.dataset)
    a, b = (_side(source, method, name, data) for source, method in zip(sources, methods, strict=True))
    if (a.source, a.name) == (b.source, b.name):
        raise InputError(f"A and B are both {a.name!r} of {a.source!r}; name two different methods or runs.")
    return a, b


def _of_one_run(run: str, methods: tuple[str | None, str | None], results: Path) -> tuple[Side, Side]:
    if Path(run).is_file():
        raise InputError(f"Nothing to compare {run!r} with; name a second file or a run.")
    found = past_run(run, results)
    names = list(found.methods) if methods == (None, None) else list(methods)
    if len(names) != 2 or None in names or names[0] == names[1]:
        raise InputError(
            f"To compare within the run {found.name!r}, name two of its methods ({', '.join(found.methods)}) with "
            "--method-a and --method-b; or give a second run."
        )
    return run_side(found, names[0]), run_side(found, names[1])


def _source(given: str, results: Path) -> PastRun | Path:
    return Path(given) if Path(given).is_file() else past_run(given, results)


def _side(source: PastRun | Path, method: str | None, dataset: str, data: DataOptions) -> Side:
    if isinstance(source, PastRun):
        return run_side(source, method)
    if method is not None:
        raise InputError(
            f"{str(source)!r} is a file of predictions from one method; leave out --method-a and --method-b for it."
        )
    if data.data_file is None and data.dataset is None:
        raise InputError(f"{str(source)!r} contains no questions; name them with --data-file or --dataset.")
    settings = Settings.load()
    loaded = load_questions(
        dataset,
        data_file=data.data_file,
        aliases_file=data.aliases,
        registry=discover(settings.datasets_dir),
        access=HubAccess(token=settings.hf_token, revision=data.revision),
    )
    return file_side(source, loaded, dataset)


if __name__ == "__main__":
    app()
