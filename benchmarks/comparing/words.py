"""A comparison in words: one sentence first, then tables for a terminal of 80 columns, Markdown, or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics.paired import Difference
from meta_agent_rag.wording import counted

from ..plots import Plot, intervals, save
from ..tables import Table, as_markdown, signed, with_interval
from .comparison import Comparison, Figures, Mean, Pair, verdict
from .sides import Scored, Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_ASPECTS_ON_SCREEN = 8


def sentence(found: Comparison) -> str:
    """The result in one sentence: difference, interval, p and n, or that there is no significant difference."""
    f1, p, n = found.figures.scores["f1"].difference, p_words(found.figures.permutation_p), found.figures.n
    over = f"{p}, over {n} question{'' if n == 1 else 's'}."
    a, b = sides(found)
    known = verdict(found.figures)
    if known == "more":
        return f"{b} scores {f1.mean:.1f} F1 more than {a} [{f1.low:.1f}, {f1.high:.1f}], {over}"
    if known == "less":
        return f"{b} scores {-f1.mean:.1f} F1 less than {a} [{-f1.high:.1f}, {-f1.low:.1f}], {over}"
    return f"No significant difference between {a} and {b}: B - A is {_signed(f1)} F1, {over}"


def sides(found: Comparison) -> tuple[str, str]:
    """A and B under distinguishing names: their methods, or, if these are the same, their sources."""
    alike = found.a.name == found.b.name
    a, b = (side.source if alike else side.name for side in (found.a, found.b))
    return f"A ({a})", f"B ({b})"


def p_words(p: float) -> str:
    """`p = 0.021`, or `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def counts(found: Comparison) -> list[str]:
    """What was paired and what was not, exact matches, and wins."""
    these = found.figures
    return [
        _side("A", found.a, found.alone_a, found.failed_a, counted_as_0=found.failures_counted),
        _side("B", found.b, found.alone_b, found.failed_b, counted_as_0=found.failures_counted),
        f"EM: both right {these.both_right}, only A {these.only_a_right}, only B {these.only_b_right}, neither "
        f"{these.neither_right}; McNemar's exact {p_words(these.mcnemar_p)}.",
        f"F1: B wins {these.wins}, loses {these.losses}, ties {these.ties}; permutation "
        f"{p_words(these.permutation_p)}.",
    ]


def _side(letter: str, side: Side, alone: int, failed: int, *, counted_as_0: bool) -> str:
    unknown = f", {side.unknown} for questions that the data set does not have" if side.unknown else ""
    fate = "they score 0" if counted_as_0 else "left out"
    return (
        f"{letter}: {side.name}, {side.source}; {counted(len(side.answers), 'answer')}{unknown}, "
        f"{alone} without a counterpart, {failed} of the shared failed ({fate})."
    )


def cautions(found: Comparison, *, most: int | None = None) -> list[str]:
    """Settings in which the two differ, one line each, at most N."""
    lines = [f"{aspect}: A {a}; B {b}" for aspect, a, b in found.differing]
    if found.unlike_golds:
        lines.append(f"gold answers: {found.unlike_golds} of the questions were scored against different ones")
    if most is not None and len(lines) > most:
        return [*lines[:most], f"and {len(lines) - most} more; --out and --json list them all"]
    return lines


def tables(found: Comparison) -> list[Table]:
    """Scores overall, then EM and F1 by question type and hop count if the data set provides them."""
    overall = Table(
        name="scores",
        title="Percent, 95 % intervals; B - A is over pairs",
        head=("score", "A", "B", "B - A"),
        rows=[
            (name.upper() if name in ("em", "f1") else name, _mean(one.a), _mean(one.b), _signed(one.difference))
            for name, one in found.figures.scores.items()
        ],
    )
    groups = (("question type", found.by_type), ("hops", found.by_hops))
    return [overall, *(_by_group(title, score, by) for title, by in groups if by for score in ("em", "f1"))]


def _by_group(title: str, score: str, by: Mapping[str, Figures]) -> Table:
    return Table(
        name=f"{score}-by-{title}",
        title=f"{score.upper()} by {title} (p not corrected for the number of groups)",
        head=(title, "n", "A", "B", "B - A", "p"),
        rows=[
            (
                name,
                str(one.n),
                f"{one.scores[score].a.mean:.1f}",
                f"{one.scores[score].b.mean:.1f}",
                _signed(one.scores[score].difference),
                p_words(one.mcnemar_p if score == "em" else one.permutation_p).removeprefix("p = ").removeprefix("p "),
            )
            for name, one in by.items()
        ],
    )


def _mean(mean: Mean) -> str:
    return with_interval(mean.mean, (mean.low, mean.high))


def _signed(difference: Difference) -> str:
    return signed(difference.mean, (difference.low, difference.high))


def pair_lines(pair: Pair) -> list[str]:
    """A question and its two answers, as lines."""
    one, other = pair
    return [f"{one.id}: {one.question}", f"gold {' / '.join(one.golds)!r}; A {_answer(one)}; B {_answer(other)}"]


def _answer(answer: Scored) -> str:
    said = "failed" if answer.prediction is None else repr(answer.prediction)
    return f"{said} (F1 {100 * answer.score.f1:.0f})"


def markdown(found: Comparison) -> str:
    """The whole comparison, with every question won and lost."""
    parts = [f"**{sentence(found)}**", _bullets(counts(found))]
    if lines := cautions(found):
        parts += ["## Measured differently", _bullets(lines)]
    for table in tables(found):
        parts += [f"## {table.title}", as_markdown(table)]
    for title, pairs in (("Won by B", found.won), ("Lost by B", found.lost)):
        listed = _bullets([" ".join(" ".join(pair_lines(pair)).split()) for pair in pairs]) or "None."
        parts += [f"## {title} ({len(pairs)})", listed]
    return "\n\n".join(parts) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def as_json(found: Comparison) -> dict[str, Any]:
    """The comparison as one object; figures in percent, `difference` is B minus A."""
    return {
        "verdict": verdict(found.figures),
        "sentence": sentence(found),
        "dataset": found.a.dataset,
        "a": _side_json(found.a, found.alone_a, found.failed_a),
        "b": _side_json(found.b, found.alone_b, found.failed_b),
        "failures_counted": found.failures_counted,
        **asdict(found.figures),
        "by_type": {name: asdict(one) for name, one in found.by_type.items()},
        "by_hops": {name: asdict(one) for name, one in found.by_hops.items()},
        "differing": [{"aspect": aspect, "a": a, "b": b} for aspect, a, b in found.differing],
        "unlike_golds": found.unlike_golds,
        "won": [_pair_json(pair) for pair in found.won],
        "lost": [_pair_json(pair) for pair in found.lost],
    }


def _side_json(side: Side, alone: int, failed: int) -> dict[str, Any]:
    return {
        "name": side.name,
        "source": side.source,
        "answers": len(side.answers),
        "alone": alone,
        "failed": failed,
        "unknown": side.unknown,
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    one, other = pair
    return {
        "id": one.id,
        "question": one.question,
        "golds": list(one.golds),
        "a": {"prediction": one.prediction, **asdict(one.score)},
        "b": {"prediction": other.prediction, **asdict(other.score)},
    }


def show(found: Comparison, *, examples: int) -> None:
    """Print it, with up to N questions won and lost."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Drawn

    from meta_agent_rag.cli.shared.command import plain

    console = Console(highlight=False)
    console.print(f"[bold]{plain(sentence(found))}[/bold]\n")
    for line in counts(found):
        console.print(plain(line))
    if lines := cautions(found, most=_ASPECTS_ON_SCREEN):
        console.print(
            "\n[bold]Measured under different settings, so the difference may not be due to the method:[/bold]"
        )
        for line in lines:
            console.print(f"- {plain(line)}")
    for table in tables(found):
        drawn = Drawn(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
        for number, cell in enumerate(table.head):
            drawn.add_column(cell, overflow="fold" if number == 0 else "ellipsis", no_wrap=number > 0)
        for row in table.rows:
            drawn.add_row(*(plain(cell) for cell in row))
        console.print(f"\n[italic]{plain(table.title)}[/italic]")
        console.print(drawn)
    for title, pairs in (("Won by B", found.won), ("Lost by B", found.lost)):
        if shown := pairs[:examples]:
            console.print(f"\n[bold]{title}, {len(shown)} of {len(pairs)}[/bold]")
        for pair in shown:
            first, second = pair_lines(pair)
            console.print(f"- {plain(first)}\n  {plain(second)}")


_ENDINGS = ("png", "svg")
_SCORES = {"F1": "f1", "EM": "em"}


def save_plot(found: Comparison, path: Path) -> None:
    """Draw it into a PNG or SVG file; raises `InputError` for a name with a different ending."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in _ENDINGS:
        raise InputError(f"The plot is written as PNG or SVG; {path.name!r} must end in .png or .svg.")
    by_hops = {f"{hops} hops": one for hops, one in found.by_hops.items()}
    groups = {"all": found.figures, **found.by_type, **by_hops}
    a, b = sides(found)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        differences = {
            label: [
                (one.scores[score].difference.mean, one.scores[score].difference.low, one.scores[score].difference.high)
                for one in groups.values()
            ]
            for label, score in _SCORES.items()
        }
        intervals(axes, [f"{name} (n = {one.n})" for name, one in groups.items()], differences)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_xlabel("points, 95 % intervals")
        axes.legend()

    save(Plot(name=path.stem, title=f"{b} minus {a}", draw=draw, height=1.6 + 0.5 * len(groups)), path.parent, ending)
