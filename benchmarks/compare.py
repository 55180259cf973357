"""Compare two methods or runs, question by question: `python -m benchmarks.compare --help`.

Everything is B minus A, in percent, over pairs. A pair in which a side failed says nothing about the answers, so it is
left out unless failures are to be counted; they then score 0.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics import mcnemar_exact, paired_difference, permutation_p, verdict
from meta_agent_rag.wording import counted, printable

from .run.folder import PastRun, Row, past_run
from .statistics import score_interval
from .tables import Table, as_markdown, p_words, signed, with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_ON_SCREEN = 5
"""Questions won and lost, and differences of protocol, that are shown; `--out` writes them all."""
_APART = ("dataset", "methods", "data_file", "aliases_file", "judge")
"""Fields of an experiment that are compared, or that change no answer."""


@app.command()
@reporting
def main(
    first: Annotated[str, typer.Argument(metavar="A", help="A run folder, by path or name.")],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="The other run; if omitted, two methods of A are compared.")
    ] = None,
    method_a: Annotated[str | None, typer.Option(help="The method of A, if its run has several.")] = None,
    method_b: Annotated[str | None, typer.Option(help="The method of B, if its run has several.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("RESULTS"),
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

    Questions that a side failed to answer are left out. Predictions of other systems become a run by `import`.
    """
    found = compare(*_sides(first, second, (method_a, method_b), output_dir), count_failures=count_failures)
    if out is not None:
        out.write_text(markdown(found), encoding="utf-8")
    if as_json:
        print_json(found)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False).print(Markdown(printable(markdown(found, most=_ON_SCREEN))))
    if out is not None:
        say(f"\nWritten: {out}")


@dataclass(frozen=True, kw_only=True)
class Side:
    """A method of a run: its rows by question id; `protocol` has the aspects of how they were produced."""

    name: str
    source: str
    dataset: str
    rows: Mapping[str, Row]
    protocol: Mapping[str, Any]


def _sides(first: str, second: str | None, methods: tuple[str | None, str | None], results: Path) -> tuple[Side, Side]:
    run = past_run(first, results)
    if second is not None:
        a, b = run_side(run, methods[0]), run_side(past_run(second, results), methods[1])
        if (a.source, a.name) == (b.source, b.name):
            raise InputError(f"A and B are both {a.name!r} of {a.source!r}; name two different methods or runs.")
        return a, b
    names = list(run.methods) if methods == (None, None) else list(methods)
    if len(names) != 2 or None in names or names[0] == names[1]:
        raise InputError(
            f"To compare within the run {run.name!r}, name two of its methods ({', '.join(run.methods)}) with "
            "--method-a and --method-b; or give a second run."
        )
    return run_side(run, names[0]), run_side(run, names[1])


def run_side(run: PastRun, method: str | None) -> Side:
    """A method of a run; without a name, the run's only method. Raises `InputError` if it has several, or lacks it."""
    from .run.provenance import conditions  # imported here, so that --help is quick

    if method is None:
        if len(run.methods) > 1:
            raise InputError(
                f"The run {run.name!r} has several methods ({', '.join(run.methods)}); "
                "name one of them with --method-a or --method-b."
            )
        method = next(iter(run.methods))
    rows = run.rows(method)
    models = {call["model"] for row in rows for call in row.get("usage", ()) if "model" in call}
    chosen = {name: value for name, value in run.config["experiment"].items() if name not in _APART}
    stated = {**chosen, "commit": run.config.get("commit"), "models of the calls": sorted(models)}
    return Side(
        name=method,
        source=f"run {run.name}",
        dataset=run.dataset,
        rows={row["id"]: row for row in rows},
        protocol=stated if run.config["experiment"]["mode"] == "imported" else stated | conditions(run.config),
    )


Pair = tuple[Row, Row]


def compare(a: Side, b: Side, *, count_failures: bool = False) -> dict[str, Any]:
    """Pair two sides by question; returns the comparison as one JSON object, figures in percent.

    `scores` has for each score the means of `a` and `b` and the `difference`, with their intervals; the four counts
    are of exact matches, of which `mcnemar_p` compares the middle two; `permutation_p` tests F1; `wins`, `losses` and
    `ties` are B's by F1 (by EM if F1 is equal). Each side's `alone` counts questions that the other lacks, `failed`
    its failures among the shared. Raises `InputError` for sides that cannot be compared.
    """
    shared = _shared(a, b)
    pairs = [pair for pair in shared if count_failures or all(row["error"] is None for row in pair)]
    if not pairs:
        raise InputError(
            f"None of the {counted(len(shared), 'shared question')} was answered by both sides; continue the run with "
            "--resume RUN --retry-failed, or count failures as 0 with --count-failures."
        )
    f1 = [_percent(side, "f1") for side in zip(*pairs, strict=True)]
    difference, p = paired_difference(*f1), permutation_p(*f1)
    right = Counter(tuple((row["em"] or 0.0) >= 1.0 for row in pair) for pair in pairs)
    outcomes = Counter(map(_outcome, pairs))
    ranked = sorted(pairs, key=_change, reverse=True)
    found = {
        "verdict": verdict(difference, p),
        "dataset": a.dataset,
        "n": len(pairs),
        "scores": {name: _score(pairs, name) for name in ("em", "f1", "precision", "recall")},
        "both_right": right[True, True],
        "only_a_right": right[True, False],
        "only_b_right": right[False, True],
        "neither_right": right[False, False],
        "mcnemar_p": mcnemar_exact(right[True, False], right[False, True]),
        "permutation_p": p,
        "wins": outcomes[1],
        "losses": outcomes[-1],
        "ties": outcomes[0],
        "a": _about(a, shared, 0),
        "b": _about(b, shared, 1),
        "failures_counted": count_failures,
        "differing": [
            (name, *(side.protocol.get(name, "not stated") for side in (a, b)))
            for name in dict.fromkeys((*a.protocol, *b.protocol))
            if a.protocol.get(name, "not stated") != b.protocol.get(name, "not stated")
        ],
        "won": [_shown(pair) for pair in ranked if _outcome(pair) > 0],
        "lost": [_shown(pair) for pair in ranked if _outcome(pair) < 0],
    }
    return {"sentence": sentence(found), **found}


def _shared(a: Side, b: Side) -> list[Pair]:
    """The rows of the questions that both sides have. Raises `InputError` if they are not the same questions."""
    if a.dataset != b.dataset:
        raise InputError(
            f"A is from the data set {a.dataset!r} and B from {b.dataset!r}; "
            "only answers to the same questions can be compared."
        )
    shared = [(a.rows[id_], b.rows[id_]) for id_ in sorted(a.rows.keys() & b.rows.keys())]
    if not shared:
        raise InputError(
            f"A ({counted(len(a.rows), 'question')}) and B ({len(b.rows)}) have no question in common; "
            "compare runs over the same questions, with the same --seed and --n."
        )
    for one, other in shared:
        if one["question"] != other["question"]:
            raise InputError(
                f"The id {one['id']!r} names different questions in A and B; compare runs over the same data."
            )
    return shared


def _percent(rows: Sequence[Row], score: str) -> list[float]:
    return [100.0 * (row[score] or 0.0) for row in rows]


def _score(pairs: Sequence[Pair], name: str) -> dict[str, dict[str, float]]:
    """The means of both sides and their paired difference, each with its interval."""
    sides = [_percent(side, name) for side in zip(*pairs, strict=True)]
    found = {"difference": asdict(paired_difference(*sides))}
    for letter, values in zip("ab", sides, strict=True):
        low, high = score_interval(values, exact=name == "em")
        found[letter] = {"mean": sum(values) / len(values), "low": low, "high": high}
    return found


def _about(side: Side, shared: Sequence[Pair], place: int) -> dict[str, Any]:
    return {
        "name": side.name,
        "source": side.source,
        "answers": len(side.rows),
        "alone": len(side.rows) - len(shared),
        "failed": sum(pair[place]["error"] is not None for pair in shared),
    }


def _outcome(pair: Pair) -> int:
    a, b = ((row["f1"] or 0.0, row["em"] or 0.0) for row in pair)
    return (b > a) - (b < a)


def _change(pair: Pair) -> tuple[float, ...]:
    one, other = pair
    return tuple(abs((other[score] or 0.0) - (one[score] or 0.0)) for score in ("em", "f1"))


def _shown(pair: Pair) -> dict[str, Any]:
    one, other = pair
    golds = list(dict.fromkeys((other["gold"], *other.get("aliases", ()))))
    sides = {
        letter: {"prediction": row["prediction"], "em": row["em"] or 0.0, "f1": row["f1"] or 0.0}
        for letter, row in zip("ab", pair, strict=True)
    }
    return {"id": one["id"], "question": one["question"], "golds": golds, **sides}


def sentence(found: Mapping[str, Any]) -> str:
    """The result in one sentence: difference, interval, p and n, or that there is no significant difference."""
    f1 = found["scores"]["f1"]["difference"]
    over = f"{p_words(found['permutation_p'])}, over {counted(found['n'], 'question')}."
    told = "source" if found["a"]["name"] == found["b"]["name"] else "name"
    a, b = (f"{letter.upper()} ({found[letter][told]})" for letter in "ab")
    if found["verdict"] == "more":
        return f"{b} scores {f1['mean']:.1f} F1 more than {a} [{f1['low']:.1f}, {f1['high']:.1f}], {over}"
    if found["verdict"] == "less":
        return f"{b} scores {-f1['mean']:.1f} F1 less than {a} [{-f1['high']:.1f}, {-f1['low']:.1f}], {over}"
    return f"No significant difference between {a} and {b}: B - A is {_signed(f1)} F1, {over}"


def markdown(found: Mapping[str, Any], *, most: int | None = None) -> str:
    """The comparison as Markdown, with every question won and lost, or at most N of each."""
    fate = "they score 0" if found["failures_counted"] else "left out"
    lines = []
    for letter in "ab":
        side = found[letter]
        lines.append(
            f"{letter.upper()}: {side['name']}, {side['source']}; {counted(side['answers'], 'answer')}, "
            f"{side['alone']} without a counterpart, {side['failed']} of the shared failed ({fate})."
        )
    lines += [
        f"EM: both right {found['both_right']}, only A {found['only_a_right']}, only B {found['only_b_right']}, "
        f"neither {found['neither_right']}; McNemar's exact {p_words(found['mcnemar_p'])}.",
        f"F1: B wins {found['wins']}, loses {found['losses']}, ties {found['ties']}; permutation "
        f"{p_words(found['permutation_p'])}.",
    ]
    table = Table(
        name="scores",
        title="Percent, 95 % intervals; B - A is over pairs",
        head=("score", "A", "B", "B - A"),
        rows=[
            (
                name.upper() if name in ("em", "f1") else name,
                _mean(one["a"]),
                _mean(one["b"]),
                _signed(one["difference"]),
            )
            for name, one in found["scores"].items()
        ],
    )
    parts = [f"**{found['sentence']}**", _bullets(lines, None)]
    if unlike := [f"{aspect}: A {a}; B {b}" for aspect, a, b in found["differing"]]:
        parts += ["## Measured differently, so the difference may not be due to the method", _bullets(unlike, most)]
    parts += [f"## {table.title}", as_markdown(table)]
    for title, pairs in (("Won by B", found["won"]), ("Lost by B", found["lost"])):
        parts += [f"## {title} ({len(pairs)})", _bullets([_pair(pair) for pair in pairs], most) or "None."]
    return "\n\n".join(parts) + "\n"


def _bullets(lines: Sequence[str], most: int | None) -> str:
    more = [] if most is None or len(lines) <= most else [f"and {len(lines) - most} more; --out and --json list them"]
    return "\n".join(f"- {line}" for line in [*lines[:most], *more])


def _pair(pair: Mapping[str, Any]) -> str:
    a, b = (
        f"{'failed' if side['prediction'] is None else repr(side['prediction'])} (F1 {100 * side['f1']:.0f})"
        for side in (pair["a"], pair["b"])
    )
    return " ".join(f"{pair['id']}: {pair['question']} gold {' / '.join(pair['golds'])!r}; A {a}; B {b}".split())


def _mean(mean: Mapping[str, float]) -> str:
    return with_interval(mean["mean"], (mean["low"], mean["high"]))


def _signed(difference: Mapping[str, float]) -> str:
    return signed(difference["mean"], (difference["low"], difference["high"]))


if __name__ == "__main__":
    app()
