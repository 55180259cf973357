"""Compare two methods, runs or prediction files, question by question: `python -m benchmarks.compare --help`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, discover, load_questions
from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import Settings
from meta_agent_rag.statistics.paired import Difference
from meta_agent_rag.wording import counted, printable

from .comparison import Comparison, Figures, Pair, Side, as_object, compare, file_side, run_side
from .rows.past_run import PastRun, past_run
from .tables import Table, as_markdown, p_words, signed, with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_DEFAULT_DATASET = "hotpotqa"
_ON_SCREEN = 5
"""Questions won and lost, and differences of protocol, that are shown; `--out` writes them all."""


@app.command()
@reporting
def main(
    first: Annotated[str, typer.Argument(metavar="A", help="A run folder (path or name), or a file of predictions.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The other side; if omitted, two methods of A are compared.")
    ] = None,
    method_a: Annotated[str | None, typer.Option(help="The method of A, if its run has several.")] = None,
    method_b: Annotated[str | None, typer.Option(help="The method of B, if its run has several.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("RESULTS"),
    data_file: Annotated[Path | None, typer.Option(help="The questions of the prediction files.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help=f"Their data set; with --data-file, by default the run's or {_DEFAULT_DATASET}.")
    ] = None,
    aliases: Annotated[Path | None, typer.Option(help="2WikiMultiHopQA's id_aliases.json.")] = None,
    count_failures: Annotated[
        bool, typer.Option("--count-failures", help="Include questions that a side failed to answer, scored 0.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown, with every question.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare B with A on the questions that both answered, and test the difference for significance.

    Questions that a side failed to answer are left out. A file of predictions is of any kind that `import` reads.
    """
    questions = {"data_file": data_file, "dataset": dataset, "aliases": aliases}
    a, b = _sides(first, second, (method_a, method_b), questions, output_dir)
    found = compare(a, b, count_failures=count_failures)
    if out is not None:
        out.write_text(markdown(found), encoding="utf-8")
    if as_json:
        print_json({"sentence": sentence(found), **as_object(found)})
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False).print(Markdown(printable(markdown(found, most=_ON_SCREEN))))
    if out is not None:
        say(f"\nWritten: {out}")


def _sides(
    first: str, second: str | None, methods: tuple[str | None, str | None], questions: Mapping[str, Any], results: Path
) -> tuple[Side, Side]:
    places = [one for one in (first, second) if one is not None]
    given = [name for name, value in questions.items() if value is not None]
    if given and not any(Path(one).is_file() for one in places):
        raise InputError(
            f"--{given[0].replace('_', '-')} {str(questions[given[0]])!r} applies to files of predictions, but "
            f"{' and '.join(map(repr, places))} brings its own questions; leave it out."
        )
    if second is None:
        return _of_one_run(first, methods, results)
    sources = [Path(one) if Path(one).is_file() else past_run(one, results) for one in places]
    run = next((source for source in sources if isinstance(source, PastRun)), None)
    name = questions["dataset"] or (_DEFAULT_DATASET if run is None else run.dataset)
    loaded = None
    found = []
    for source, method in zip(sources, methods, strict=True):
        if isinstance(source, PastRun):
            found.append(run_side(source, method))
            continue
        if method is not None:
            raise InputError(
                f"{str(source)!r} is a file of predictions from one method; leave out --method-a and --method-b for it."
            )
        if questions["data_file"] is None and questions["dataset"] is None:
            raise InputError(f"{str(source)!r} contains no questions; name them with --data-file or --dataset.")
        if loaded is None:
            settings = Settings.load()
            loaded = load_questions(
                name,
                data_file=questions["data_file"],
                aliases_file=questions["aliases"],
                registry=discover(settings.datasets_dir),
                access=HubAccess(token=settings.hf_token, revision=_revision(run, name, questions["data_file"])),
            )
        found.append(file_side(source, loaded, name))
    a, b = found
    if (a.source, a.name) == (b.source, b.name):
        raise InputError(f"A and B are both {a.name!r} of {a.source!r}; name two different methods or runs.")
    return a, b


def _revision(run: PastRun | None, dataset: str, data_file: Path | None) -> str | None:
    """The revision that a run had of the data set, if the predictions are compared with it."""
    if run is None or run.dataset != dataset or data_file is not None:
        return None
    revision: str | None = run.config.get("revision") or run.config["experiment"].get("revision")
    return revision


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


def sentence(found: Comparison) -> str:
    """The result in one sentence: difference, interval, p and n, or that there is no significant difference."""
    f1, p, n = found.figures.scores["f1"]["difference"], p_words(found.figures.permutation_p), found.figures.n
    over = f"{p}, over {counted(n, 'question')}."
    alike = found.a.name == found.b.name
    a, b = (f"{letter} ({side.source if alike else side.name})" for letter, side in (("A", found.a), ("B", found.b)))
    if found.figures.verdict == "more":
        return f"{b} scores {f1.mean:.1f} F1 more than {a} [{f1.low:.1f}, {f1.high:.1f}], {over}"
    if found.figures.verdict == "less":
        return f"{b} scores {-f1.mean:.1f} F1 less than {a} [{-f1.high:.1f}, {-f1.low:.1f}], {over}"
    return f"No significant difference between {a} and {b}: B - A is {_signed(f1)} F1, {over}"


def markdown(found: Comparison, *, most: int | None = None) -> str:
    """The comparison as Markdown, with every question won and lost, or at most N of each."""
    these = found.figures
    fate = "they score 0" if found.failures_counted else "left out"
    lines = []
    for letter, side, alone, failed in (
        ("A", found.a, found.alone_a, found.failed_a),
        ("B", found.b, found.alone_b, found.failed_b),
    ):
        unknown = f", {side.unknown} for questions that the data set does not have" if side.unknown else ""
        lines.append(
            f"{letter}: {side.name}, {side.source}; {counted(len(side.answers), 'answer')}{unknown}, "
            f"{alone} without a counterpart, {failed} of the shared failed ({fate})."
        )
    lines += [
        f"EM: both right {these.both_right}, only A {these.only_a_right}, only B {these.only_b_right}, neither "
        f"{these.neither_right}; McNemar's exact {p_words(these.mcnemar_p)}.",
        f"F1: B wins {these.wins}, loses {these.losses}, ties {these.ties}; permutation "
        f"{p_words(these.permutation_p)}.",
    ]
    parts = [f"**{sentence(found)}**", _bullets(lines, None)]
    unlike = [f"{aspect}: A {a}; B {b}" for aspect, a, b in found.differing]
    if unlike:
        parts += ["## Measured differently, so the difference may not be due to the method", _bullets(unlike, most)]
    for table in tables(found):
        parts += [f"## {table.title}", as_markdown(table)]
    for title, pairs in (("Won by B", found.won), ("Lost by B", found.lost)):
        parts += [f"## {title} ({len(pairs)})", _bullets([_pair(pair) for pair in pairs], most) or "None."]
    return "\n\n".join(parts) + "\n"


def _bullets(lines: Sequence[str], most: int | None) -> str:
    more = [] if most is None or len(lines) <= most else [f"and {len(lines) - most} more; --out and --json list them"]
    return "\n".join(f"- {line}" for line in [*lines[:most], *more])


def _pair(pair: Pair) -> str:
    one, other = pair
    a, b = (
        f"{'failed' if side.prediction is None else repr(side.prediction)} (F1 {100 * side.score.f1:.0f})"
        for side in pair
    )
    return " ".join(f"{one.id}: {one.question} gold {' / '.join(other.golds)!r}; A {a}; B {b}".split())


def tables(found: Comparison) -> list[Table]:
    """Scores overall, then EM and F1 by question type if the data set provides it."""
    overall = Table(
        name="scores",
        title="Percent, 95 % intervals; B - A is over pairs",
        head=("score", "A", "B", "B - A"),
        rows=[
            (
                name.upper() if name in ("em", "f1") else name,
                *map(_mean, (one["a"], one["b"])),
                _signed(one["difference"]),
            )
            for name, one in found.figures.scores.items()
        ],
    )
    return [overall, *(_by_type(score, found.by_type) for score in ("em", "f1") if found.by_type)]


def _by_type(score: str, by: Mapping[str, Figures]) -> Table:
    rows = []
    for name, one in by.items():
        means, p = one.scores[score], one.mcnemar_p if score == "em" else one.permutation_p
        a, b = (f"{means[side].mean:.1f}" for side in ("a", "b"))
        rows.append((name, str(one.n), a, b, _signed(means["difference"]), p_words(p).removeprefix("p ").lstrip("= ")))
    return Table(
        name=f"{score}-by-type",
        title=f"{score.upper()} by question type (p not corrected for the number of types)",
        head=("question type", "n", "A", "B", "B - A", "p"),
        rows=rows,
    )


def _mean(mean: Difference) -> str:
    return with_interval(mean.mean, (mean.low, mean.high))


def _signed(difference: Difference) -> str:
    return signed(difference.mean, (difference.low, difference.high))


if __name__ == "__main__":
    app()
