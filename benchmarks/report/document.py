"""`report.md`, with its plots as PNG and its tables as CSV beside it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from meta_agent_rag.discovery import calling
from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.providers import EMBEDDED, providers
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.statistics import Verdict
from meta_agent_rag.wording import counted

from ..analyses import discover_analyses
from ..plots import Plot, save
from ..rows.summary import FAILED
from ..run.arms import Arm
from ..run.config import RunConfig
from ..run.folder import REPORT, RunFolder
from ..tables import Table, as_csv, as_markdown, p_words, signed, with_interval
from .figures import Methods, cost, cost_plot, latency, mixed, quality, quality_plot, supporting, survival
from .published import published

Summary = Mapping[str, Any]
PLOTS, TABLES = "plots", "tables"
_OVER = (
    "Scores are over the answered questions. `fired` is a share of these; `fixed` and `broken` are counts among them."
)
_CHANGED = "Not results of the protocol above: each row changes what its name says."
_VARIED = "Variations: same protocol except for what each name says, percent"
_LOST = (
    "The percentage still present after each stage of a round: among its evidence; in the prompt, after shortening; "
    "quoted verbatim; cited or quoted (of an answer: in the short answer)."
)
_SUPPORT = (
    "The official scores: a verbatim quote counts as the sentences that it comes from, and as wrong if it is from "
    "another question's passage. Joint scores multiply precision and recall."
)
_CACHED = (
    "The time in which an answer was worked on, and the mean wait (queueing, failed tries), without answers from the "
    "response cache; `cached`: no answer is without."
)
_PUBLISHED = "Figures are comparable only if everything in their protocol is as in this run's."
_PACKAGED = (
    "The packaged model is too small for this task, so these scores only show that everything works. "
    "`marag tour` shows real answers; `marag models` lists larger models."
)
_PLACES: Mapping[Verdict, str] = {
    "more": "scores higher than",
    "less": "scores lower than",
    "unknown": "does not differ significantly from",
}


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, its text, its tables and its plots."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()


def write_report(
    folder: RunFolder,
    config: RunConfig,
    summary: Summary,
    rows: Sequence[Mapping[str, Any]],
    *,
    arms: Sequence[Arm],
    protocol: Mapping[str, str],
    plots: bool = True,
    caveat: str = "",
) -> None:
    """Write `report.md`, `plots/*.png` and `tables/*.csv` into a run's folder.

    `caveat` is a sentence for its opening. If a plot cannot be drawn, the report names it with
    the reason; nothing else is lost.
    """
    found = list(_sections(summary, rows, arms=arms, free=runs_here(config.settings)))
    if caution := mixed(summary["methods"]):
        found = [replace(one, tables=[replace(table, caveat=caution) for table in one.tables]) for one in found]
    found += _section("Published figures under other protocols", _PUBLISHED, [published(config.dataset)])
    (folder.path / TABLES).mkdir(exist_ok=True)
    for table in (table for section in found for table in section.tables):
        (folder.path / TABLES / f"{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
    model = config.model_words or described(config.settings)
    parts = [
        of_the_packaged_model(summary),
        headline(summary),
        *_cautions(summary["methods"]),
        f"Data set {config.dataset}, mode {config.mode}, {counted(summary['n'], 'question')}; model {model}.",
        caveat,
        f"Protocol: {'; '.join(f'{aspect}: {words}' for aspect, words in protocol.items())}.",
    ]
    for section in found:
        parts += [f"## {section.title}", section.text]
        for table in section.tables:
            parts += [f"**{table.caption}**", as_markdown(table), table.note]
        parts += [_drawn(plot, folder.path / PLOTS) for plot in section.plots if plots]
    folder.write_text(REPORT, "\n\n".join(part for part in parts if part) + "\n")


def _drawn(plot: Plot, folder: Path) -> str:
    """Draw a plot; returns the line of the report that shows it, or why it could not be drawn."""
    try:
        save(plot, folder)
    except Exception as error:  # noqa: BLE001  # a plot must not cost the report; the reason replaces it
        reason = " ".join(str(error).split())
        return f"The plot {plot.name!r} could not be drawn: {type(error).__name__}: {reason}"
    return f"![{plot.title}]({PLOTS}/{plot.name}.png)"


def _cautions(methods: Methods) -> Iterator[str]:
    """State how many answers are missing, and which models answered which rows if there are several."""
    lacking = [
        f"{name} answered {figures['answered']} of {figures['n']}, {figures['errors']} failed"
        for name, figures in methods.items()
        if figures["answered"] < figures["n"]
    ]
    if lacking:
        yield f"**Answers are missing, and scores are over the others**: {'; '.join(lacking)}."
    if mixed(methods):
        stated = (
            f"{name}: {', '.join(f'{model} ({calls})' for model, calls in figures.get('models', {}).items())}"
            for name, figures in methods.items()
        )
        yield f"**Mixed models**: not every call was answered by the same model, in calls {'; '.join(stated)}."


def _sections(
    summary: Summary, rows: Sequence[Mapping[str, Any]], *, arms: Sequence[Arm], free: bool
) -> Iterator[Section]:
    """Everything below the opening; `free` says that the model runs on this machine."""
    methods: Methods = summary["methods"]
    variants = {arm.name for arm in arms if arm.variant}
    plain = {name: figures for name, figures in methods.items() if name not in variants}
    varied = {name: figures for name, figures in methods.items() if name in variants}
    if plain:
        tables, plots = [quality(plain, free=free)], [quality_plot(plain)]
        yield Section(title="Quality", text=_OVER, tables=tables, plots=plots)
    if varied:
        tables = [quality(varied, free=free, table="varied", title=_VARIED)]
        yield Section(title="Variations", text=_CHANGED, tables=tables)
    yield from _section("Supporting facts", _SUPPORT, [supporting(methods)])
    yield from _analysed(summary)
    yield from _section("Cost", _cut(methods), [cost(methods, free=free)], [cost_plot(plain or methods)])
    yield from _section("Latency", _CACHED, [latency(methods)])
    left = [
        survival(methods, "evidence_recall", name="evidence", title="Supporting paragraphs by round, percent"),
        survival(methods, "answer_recall", name="gold-answers", title="Gold answers by round, percent"),
    ]
    yield from _section("Where evidence is lost", _LOST, left)
    notes = [
        f"{method}, {counted(count, 'question')}: {note}"
        for method, found in methods.items()
        for note, count in found["notes"].items()
    ]
    failures = [
        f"{row['method']} {row['id']}: {' '.join(row['error'].split())}" for row in rows if row["error"] is not None
    ]
    for title, items in (("Notes", [*_lost(rows), *notes]), ("Failed questions", failures)):
        if items:
            yield Section(title=title, text="\n".join(f"- {item}" for item in items))


def _section(title: str, text: str, tables: Sequence[Table], plots: Sequence[Plot] = ()) -> Iterator[Section]:
    if kept := [table for table in tables if table.rows]:
        yield Section(title=title, text=text, tables=kept, plots=plots)


def _analysed(summary: Summary) -> Iterator[Section]:
    methods, failed = summary["methods"], summary.get(FAILED, {})
    for analysis in discover_analyses():
        figures = {name: found[analysis.name] for name, found in methods.items() if analysis.name in found}
        if analysis.across:
            figures = summary.get(analysis.name, {})
        if analysis.name in failed:
            yield Section(title=analysis.title, text=failed[analysis.name])
        elif figures:
            try:
                with calling("analysis", analysis.name, analysis.tables):
                    tables, plots = analysis.tables(figures), analysis.plots(figures)
            except MetaRagError as error:
                yield Section(title=analysis.title, text=str(error))
            else:
                yield from _section(analysis.title, " ".join(analysis.about), tables, plots)
        elif analysis.missing and any(found["trigger_rate"] for found in methods.values()):
            yield Section(title=analysis.title, text=analysis.missing)


def _cut(methods: Methods) -> str:
    """State which stages had replies cut, and which setting changes their limit."""
    counts = sum((Counter(figures.get("cut_replies", {})) for figures in methods.values()), Counter[str]())
    if not counts:
        return ""
    stages = ", ".join(f"{stage} ({count})" for stage, count in sorted(counts.items()))
    return (
        f"Replies cut at their limit, by stage: {stages}. STAGE_TOKENS=STAGE=N raises a stage's limit, THINKING_TOKENS "
        "that for hidden reasoning."
    )


def _lost(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """State how many answers did without calls that failed: they may be worse than the method's own."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.get("lost_calls"):
            counts.setdefault(row["method"], []).append(row["lost_calls"])
    return [
        f"{method}: {counted(len(lost), 'answer')} had to do without {counted(sum(lost), 'call')} that the server did "
        "not answer; `--resume RUN --retry-failed` asks again."
        for method, lost in counts.items()
    ]


def headline(summary: Summary) -> str:
    """The result of the method that the run is about; with several, against the best of the others, pair by pair.

    A difference is claimed only if `statistics.verdict` finds one, by the same rule as in `benchmarks.compare`.
    The best of several others is selected after the run, which can only put that method at a disadvantage.
    """
    methods, comparison, n = summary["methods"], summary.get("comparison"), summary["n"]
    name = comparison["method"] if comparison else next(iter(methods))
    figures = methods[name]
    f1 = with_interval(figures["f1"], figures["f1_ci95"])
    if not comparison:
        return (
            f"**{name} scores {f1} F1 and {with_interval(figures['em'], figures['em_ci95'])} EM over "
            f"{counted(figures['n'], 'question')}** (percent, 95 % intervals); {figures['answered']} answered, "
            f"{figures['errors']} failed."
        )
    against = comparison["against"]
    best = max(against, key=lambda other: (methods[other]["f1"], methods[other]["em"]))
    rival = f"{best} ({with_interval(methods[best]['f1'], methods[best]['f1_ci95'])})"
    if len(against) > 1:
        rival += f", the best of the {len(against)} other methods"
    found, shared = against[best]["f1"], against[best].get("n", n)
    over = f"over {counted(n, 'question')}"
    own = f"{name} ({f1} F1)"
    if shared != n:  # the means are over other questions than the difference
        own, rival, over = name, best, f"over the {shared} of {n} questions that both answered"
    gap = f"{signed(found['difference'], found['ci95'])} F1 points, {p_words(found['p'])}"
    return (
        f"**{own} {_PLACES[found['verdict']]} {rival}, {over}**: paired difference {gap} "
        "(percent, 95 % bootstrap intervals)."
    )


def of_the_packaged_model(summary: Summary) -> str:
    """State that the packaged model's scores mean little, and what to do; empty if another model answered."""
    models = {model for figures in summary["methods"].values() for model in figures.get("models", ())}
    return _PACKAGED if providers()[EMBEDDED].flash in models else ""
