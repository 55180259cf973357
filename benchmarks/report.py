"""`report.md` and the table on the screen: our figures, and published ones with what differs."""

from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.providers import choose_provider

from .config import RunConfig
from .published import Protocol, differences, published_rows
from .summary import STAGES

_EVIDENCE = {
    "gold": "supplied_context",
    "supporting": "the supporting paragraphs alone",
    "open_domain": "pooled_contexts",
}
Cells = tuple[str, ...]
HEAD: Cells = ("method", "EM [95 %]", "F1 [95 %]", "prec.", "rec.", "fired", "fixed", "broken", "calls", "USD", "p50 s")
PUBLISHED_HEAD: Cells = ("published", "EM", "F1", "prec.", "rec.", "not comparable")


def protocol(config: RunConfig, *, n: int, pooled: int) -> Protocol:
    """How this run was measured, in the words that published rows are compared by."""
    models = choose_provider(config.settings).models
    sample = f"rows {config.limit}" if config.limit else f"{n} drawn with seed {config.seed}"
    return Protocol(
        dataset=config.dataset,
        evidence=f"the corpus {config.corpus}" if config.corpus else _EVIDENCE[config.mode],
        model=" and ".join(dict.fromkeys(models.values())),
        n=n,
        sample=sample,
        pooled_questions=pooled if config.mode == "open_domain" and not config.corpus else None,
    )


def our_rows(summary: Mapping[str, Any]) -> list[Cells]:
    """A row a method."""
    return [_ours(name, figures) for name, figures in summary["methods"].items()]


def _ours(name: str, figures: Mapping[str, Any]) -> Cells:
    p50 = figures["latency_s"]["p50"]
    fired = figures["trigger_rate"]
    return (
        name,
        _with_interval(figures, "em"),
        _with_interval(figures, "f1"),
        f"{figures['precision']:.1f}",
        f"{figures['recall']:.1f}",
        "-" if fired is None else f"{fired:.0%}",
        str(figures["fixed"]),
        str(figures["broken"]),
        str(figures["llm_calls"]),
        "unknown" if figures["cost_usd"] is None else f"{figures['cost_usd']:.4f}",
        # a time that the response cache shortened is no latency
        "-" if p50 is None else "cached" if figures["latency_s"]["cached_calls"] else f"{p50:.2f}",
    )


def _with_interval(figures: Mapping[str, Any], score: str) -> str:
    low, high = figures[f"{score}_ci95"]
    return f"{figures[score]:.1f} [{low:.1f}, {high:.1f}]"


def published_table(dataset: str, ours: Protocol) -> list[Cells]:
    """Published rows of the data set, each with what makes it another protocol."""
    return [
        (
            row.name,
            f"{row.em:.1f}",
            f"{row.f1:.1f}",
            "-" if row.precision is None else f"{row.precision:.1f}",
            "-" if row.recall is None else f"{row.recall:.1f}",
            "; ".join(differences(row, ours)),
        )
        for row in published_rows(dataset)
    ]


def markdown(config: RunConfig, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], ours: Protocol) -> str:
    """The whole of `report.md`."""
    parts = [
        _headline(summary),
        f"Data set {config.dataset}, mode {config.mode}, {summary['n']} questions ({ours.sample}); "
        f"model {described(choose_provider(config.settings), config.settings)}.",
        _as_markdown(HEAD, our_rows(summary)),
        _evidence(summary),
        _deficits(summary),
        _failures(rows),
    ]
    published = published_table(config.dataset, ours)
    if published:
        parts += ["## Published figures, of other protocols", _as_markdown(PUBLISHED_HEAD, published)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(summary: Mapping[str, Any]) -> str:
    name, figures = next(iter(summary["methods"].items()))
    return (
        f"**{name} scores {_with_interval(figures, 'f1')} F1 and {_with_interval(figures, 'em')} EM over "
        f"{figures['n']} questions** (percent, 95 % bootstrap intervals); {figures['answered']} answered, "
        f"{figures['errors']} failed."
    )


def _deficits(summary: Mapping[str, Any]) -> str:
    names = list(next(iter(summary["methods"].values()))["deficits"])
    fired = [
        (method, *(str(figures["deficits"][name]) for name in names), _reasons(figures["stop_reasons"]))
        for method, figures in summary["methods"].items()
        if figures["trigger_rate"]
    ]
    if not fired:
        return ""
    return "## Repairs by deficit\n\n" + _as_markdown(("method", *names, "stopped because"), fired)


def _evidence(summary: Mapping[str, Any]) -> str:
    """Where supporting paragraphs were lost, by round; nothing where the data set names none."""
    rows = [
        (method, str(stage["round"]), str(stage["n"]), *(f"{stage[name]:.1f}" for name in STAGES))
        for method, figures in summary["methods"].items()
        for stage in figures["evidence_recall"]
    ]
    if not rows:
        return ""
    return "## Evidence recall by round, percent\n\n" + _as_markdown(("method", "round", "questions", *STAGES), rows)


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in counts.items())


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    failed = [f"- {row['method']} {row['id']}: {row['error']}" for row in rows if row["error"] is not None]
    return "## Failed questions (counted as unanswered)\n\n" + "\n".join(failed) if failed else ""


def _as_markdown(head: Cells, rows: Sequence[Cells]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _aspects(differing: str) -> str:
    """The names of what differs, without the values."""
    return ", ".join(part.partition(":")[0] for part in differing.split("; "))


def _on_screen(name: str, figures: Mapping[str, Any]) -> Cells:
    """The columns that fit into 80: no precision and recall, intervals without decimals."""
    row = dict(zip(HEAD, _ours(name, figures), strict=True))
    for score in ("em", "f1"):
        low, high = figures[f"{score}_ci95"]
        row[f"{score.upper()} [95 %]"] = f"{figures[score]:.1f} [{low:.0f}, {high:.0f}]"
    return tuple(cell for column, cell in row.items() if column not in ("prec.", "rec."))


def show(config: RunConfig, summary: Mapping[str, Any], ours: Protocol) -> None:
    """Print the tables."""
    title = f"{config.dataset}, {config.mode}, {summary['n']} questions (percent)"
    head = tuple(column for column in HEAD if column not in ("prec.", "rec."))
    _print_table(title, head, [_on_screen(name, figures) for name, figures in summary["methods"].items()])
    published = [(row[0], row[1], row[2], _aspects(row[-1])) for row in published_table(config.dataset, ours)]
    _print_table("Published, not comparable: see report.md", ("method", "EM", "F1", "measured otherwise"), published)


def _print_table(caption: str, head: Cells, rows: Sequence[Cells]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title=caption, title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False)
    for cell in head:
        table.add_column(cell, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    console.print(table)
    console.print()
