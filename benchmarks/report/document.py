"""`report.md`, with its plots as PNG and its tables as CSV and LaTeX beside it."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.providers import EMBEDDED, providers
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.settings import Settings
from meta_agent_rag.statistics.paired import Verdict
from meta_agent_rag.wording import counted

from ..analyses import discover_analyses
from ..plots import Plot, save
from ..run.arms import Arm, arm_settings
from ..run.config import RunConfig
from ..run.folder import REPORT, RunFolder
from ..run.protocols import Protocol
from ..tables import Table, as_csv, as_latex, as_markdown, p_words, signed, with_interval
from .figures import (
    Methods,
    cost,
    cost_plot,
    latency,
    latency_plots,
    quality,
    quality_plot,
    split,
    stopping,
    supporting,
    survival,
)
from .published import other_protocols, same_protocol

Summary = Mapping[str, Any]
PLOTS, TABLES = "plots", "tables"
_LOST = (
    "The percentage still present after each stage of a round, over the answered questions that reached it.",
    "Retrieved: among the round's evidence; packed: in the prompt, after shortening.",
    "Quoted: packed, and quoted verbatim; used: packed, and cited or quoted; of an answer: in the short answer.",
)
_SUPPORT = (
    "The official scores: verbatim quotes count as the sentences that they come from.",
    "Quotes from passages of other questions count as wrong.",
    "The joint score multiplies precision and recall of answer and supporting facts.",
)
_OVER = (
    "Scores are over the answered questions. `fired` is a share of these; `fixed` and `broken` are counts among them.",
)


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
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    arms: Sequence[Arm],
    ours: Protocol,
    plots: bool = True,
    caveat: str = "",
) -> None:
    """Write `report.md`, `plots/*.png`, `tables/*.csv` and `tables/*.tex` into a run's folder.

    `caveat` is a sentence for its opening. If a plot cannot be drawn, the report names it with
    the reason; nothing else is lost.
    """
    parts = _sections(config, summary, rows, arms, ours)
    to_draw = [plot for section in parts for plot in section.plots] if plots else []
    for table in (table for section in parts for table in section.tables):
        _write(folder.path / TABLES / f"{table.name}.csv", as_csv(table))
        _write(folder.path / TABLES / f"{table.name}.tex", as_latex(table) + "\n")
    drawn = {plot.name: _drawn(plot, folder.path / PLOTS) for plot in to_draw}
    folder.write_text(REPORT, document(config, summary, parts, ours, drawn, caveat=caveat))


def markdown(
    config: RunConfig,
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    ours: Protocol,
    arms: Sequence[Arm] = (),
) -> str:
    """The text of `report.md` alone, without plots."""
    parts = _sections(config, summary, rows, arms, ours)
    return document(config, summary, parts, ours, {})


def _sections(
    config: RunConfig,
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    arms: Sequence[Arm],
    ours: Protocol,
) -> list[Section]:
    settings = {arm.name: arm_settings(arm, config.settings) for arm in arms}
    return sections(summary, rows, arms=arms, ours=ours, settings=settings, free=runs_here(config.settings))


def document(
    config: RunConfig,
    summary: Mapping[str, Any],
    parts: Sequence[Section],
    ours: Protocol,
    drawn: Mapping[str, str],
    *,
    caveat: str = "",
) -> str:
    """Assemble a report; `drawn` holds, for each plot, the reason why it could not be drawn, or nothing.

    `caveat` is a sentence for its opening.
    """
    opening = [
        of_the_packaged_model(summary),
        headline(summary),
        completeness(summary),
        mixture(summary),
        _setting(config, summary),
        caveat,
    ]
    opening.append(_protocol(ours))
    return "\n\n".join(part for part in [*opening, *(_text(section, drawn) for section in parts)] if part) + "\n"


def _setting(config: RunConfig, summary: Mapping[str, Any]) -> str:
    model = config.model_words or described(config.settings)
    return f"Data set {config.dataset}, mode {config.mode}, {counted(summary['n'], 'question')}; model {model}."


def _protocol(ours: Protocol) -> str:
    stated = "; ".join(f"{aspect}: {words}" for aspect, words in ours.aspects().items() if words is not None)
    return f"Protocol: {stated}."


def _text(section: Section, drawn: Mapping[str, str]) -> str:
    parts = [f"## {section.title}", section.text]
    for table in section.tables:
        parts += [f"**{table.caption}**", as_markdown(table), table.note]
    parts += [_shown(plot, drawn[plot.name]) for plot in section.plots if plot.name in drawn]
    return "\n\n".join(part for part in parts if part)


def _shown(plot: Plot, failure: str) -> str:
    return (
        f"The plot {plot.name!r} could not be drawn: {failure}"
        if failure
        else f"![{plot.title}]({PLOTS}/{plot.name}.png)"
    )


def _drawn(plot: Plot, folder: Path) -> str:
    """Draw a plot; returns why it failed, or nothing."""
    try:
        save(plot, folder)
    except Exception as error:  # noqa: BLE001  # a plot must not cost the report; the reason replaces it
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return ""


def _write(path: Path, text: str) -> None:
    """Write the whole file, or keep the old one."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def sections(
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    arms: Sequence[Arm],
    ours: Protocol,
    settings: Mapping[str, Settings],
    free: bool = False,
) -> list[Section]:
    """Everything below the opening, given the settings of each row; `free`: the model runs on this machine."""
    methods: Methods = summary["methods"]
    plain, varied = split(methods, [arm.name for arm in arms if arm.variant])
    caveat = mixed(methods)
    found = [
        *_quality(plain, varied, free=free),
        *_section("Supporting facts", " ".join(_SUPPORT), [supporting(methods)]),
        *_analysed(summary, settings),
        *_section("Cost", _cut(methods), [cost(methods, free=free)], [cost_plot(plain or methods)]),
        *_section("Latency", _cached(methods), [latency(methods)], latency_plots(plain or methods)),
        *_section("Where evidence is lost", " ".join(_LOST), _survival(methods)),
        *_section("Repairs by deficit", "", [stopping(methods)]),
        *_listed("Notes", [*_lost(rows), *_notes(methods)]),
        *_listed("Failed questions", _failures(rows)),
    ]
    together = same_protocol(ours, plain)
    if together is not None:
        found.append(Section(title="Published figures under the same protocol", tables=[together]))
    if caveat:
        found = [replace(one, tables=[replace(table, caveat=caveat) for table in one.tables]) for one in found]
    return [*found, *_published(ours)]


def _section(title: str, text: str, tables: Sequence[Table], plots: Sequence[Plot] = ()) -> Iterator[Section]:
    if kept := [table for table in tables if table.rows]:
        yield Section(title=title, text=text, tables=kept, plots=plots)


def _listed(title: str, items: Sequence[str]) -> Iterator[Section]:
    if items:
        yield Section(title=title, text="\n".join(f"- {item}" for item in items))


def _quality(plain: Methods, varied: Methods, *, free: bool) -> Iterator[Section]:
    if plain:
        text = " ".join([*_OVER, *_unjudged(plain)])
        yield Section(title="Quality", text=text, tables=[quality(plain, free=free)], plots=[quality_plot(plain)])
    if varied:
        title = "Variations: same protocol except for what each name says, percent"
        yield Section(
            title="Variations",
            text=" ".join(
                ["Not results of the protocol above: each row changes what its name says.", *_unjudged(varied)]
            ),
            tables=[quality(varied, free=free, table="varied", title=title)],
            plots=[quality_plot(varied, name="varied", title="Quality of the variations")],
        )


def _unjudged(methods: Methods) -> Iterator[str]:
    """States what the judge's figure covers, and for how many answers its verdict is missing."""
    judged = [figures for figures in methods.values() if "judge" in figures]
    if judged:
        yield "The judge's figure covers the number of answers beside it."
        missing = sum(figures["judge_missing"] for figures in judged)
        answers = sum(figures["answered"] for figures in judged)
        yield f"Its verdict is missing for {missing} of {answers} answers, which are left out."


def _analysed(summary: Mapping[str, Any], settings: Mapping[str, Settings]) -> Iterator[Section]:
    for analysis in discover_analyses():
        if analysis.across:
            figures = summary.get(analysis.name, {})
        else:
            methods = summary["methods"].items()
            figures = {name: found[analysis.name] for name, found in methods if analysis.name in found}
        if figures:
            text = " ".join([*analysis.about, *analysis.about_run(figures, settings)])
            yield from _section(analysis.title, text, analysis.tables(figures), analysis.plots(figures))
        elif analysis.missing and any(found["trigger_rate"] for found in summary["methods"].values()):
            yield Section(title=analysis.title, text=analysis.missing)


def _cut(methods: Methods) -> str:
    """States which stages had replies cut, and which setting changes their limit."""
    counts = sum((Counter(figures.get("cut_replies", {})) for figures in methods.values()), Counter[str]())
    if not counts:
        return ""
    stages = ", ".join(f"{stage} ({count})" for stage, count in sorted(counts.items()))
    return (
        f"Replies cut at their limit, by stage: {stages}. STAGE_TOKENS=STAGE=N raises a stage's limit, THINKING_TOKENS "
        "that for hidden reasoning."
    )


def _cached(methods: Methods) -> str:
    served = {name: figures for name, figures in methods.items() if figures["latency_s"]["cached_calls"]}
    if not served:
        return ""
    timed = [
        f"{found['latency_s']['timed']} of {found['answered']} ({name})"
        for name, found in served.items()
        if "timed" in found["latency_s"]
    ]
    over = f" Latencies are over the other answers: {', '.join(timed)}." if timed else ""
    return f"`cached`: the response cache served calls, so the time is not a latency.{over}"


def _survival(methods: Methods) -> list[Table]:
    return [
        survival(methods, "evidence_recall", name="evidence", title="Supporting paragraphs by round, percent"),
        survival(methods, "answer_recall", name="gold-answers", title="Gold answers by round, percent"),
    ]


def _notes(methods: Methods) -> list[str]:
    return [
        f"{method}, {counted(count, 'question')}: {note}"
        for method, found in methods.items()
        for note, count in found["notes"].items()
    ]


def _lost(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """States how many answers did without calls that failed: they may be worse than the method's own."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.get("lost_calls"):
            counts.setdefault(row["method"], []).append(row["lost_calls"])
    return [
        f"{method}: {counted(len(lost), 'answer')} had to do without {counted(sum(lost), 'call')} that the server did "
        "not answer; `--resume RUN --retry-failed` asks again."
        for method, lost in counts.items()
    ]


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{row['method']} {row['id']}: {' '.join(row['error'].split())}" for row in rows if row["error"] is not None
    ]


def _published(ours: Protocol) -> Iterator[Section]:
    if others := other_protocols(ours):
        yield Section(
            title="Published figures under other protocols",
            text="Not comparable with this run; each table says what differs.",
            tables=others,
        )


_PLACES: Mapping[Verdict, str] = {
    "more": "scores higher than",
    "less": "scores lower than",
    "unknown": "does not differ significantly from",
}


def headline(summary: Summary) -> str:
    """The result of the method that the run is about; with several, against the best of the others, pair by pair.

    A difference is claimed only if `statistics.verdict` finds one, by the same rule as in `benchmarks.compare`.
    The best of several others is selected after the run, which can only put that method at a disadvantage.
    """
    comparison = summary.get("comparison")
    if not comparison:
        return _alone(summary)
    methods, name = summary["methods"], comparison["method"]
    best = max(comparison["against"], key=lambda other: (methods[other]["f1"], methods[other]["em"]))
    return _compared(summary, name, best, comparison["against"][best], len(comparison["against"]))


def _alone(summary: Summary) -> str:
    name, figures = next(iter(summary["methods"].items()))
    return (
        f"**{name} scores {with_interval(figures['f1'], figures['f1_ci95'])} F1 and "
        f"{with_interval(figures['em'], figures['em_ci95'])} EM over {counted(figures['n'], 'question')}** "
        f"(percent, 95 % intervals); {figures['answered']} answered, {figures['errors']} failed."
    )


def _compared(summary: Summary, name: str, best: str, differences: Mapping[str, Any], others: int) -> str:
    figures, n, found = summary["methods"], summary["n"], differences["f1"]
    scored = with_interval(figures[name]["f1"], figures[name]["f1_ci95"])
    theirs = with_interval(figures[best]["f1"], figures[best]["f1_ci95"])
    rival = f"{best} ({theirs})" if others == 1 else f"{best} ({theirs}), the best of the {others} other methods"
    gap = f"{signed(found['difference'], found['ci95'])} F1 points, {p_words(found['p'])}"
    stated = f"{name} ({scored} F1) {_PLACES[found['verdict']]} {rival}, {_over(differences, n)}"
    return f"**{stated}**: paired difference {gap} (percent, 95 % bootstrap intervals)."


def _over(differences: Mapping[str, Any], n: int) -> str:
    shared = differences.get("n", n)
    return f"over {counted(n, 'question')}" if shared == n else f"over the {shared} of {n} questions that both answered"


def of_the_packaged_model(summary: Mapping[str, Any]) -> str:
    """That the packaged model's scores mean little, and what to do; empty if another model answered."""
    if any(providers()[EMBEDDED].flash in figures.get("models", ()) for figures in summary["methods"].values()):
        return _PACKAGED
    return ""


_PACKAGED = (
    "The packaged model is too small for this task, so these scores only show that everything works. "
    "`marag tour` shows real answers; `marag models` lists larger models."
)


def mixed(methods: Mapping[str, Mapping[str, Any]]) -> str:
    """The caveat of every table if more than one model answered; empty if only one did, or if it is not known."""
    models = {model for figures in methods.values() for model in figures.get("models", ())}
    return "mixed models" if len(models) > 1 else ""


def mixture(summary: Summary) -> str:
    """States which models answered which rows of a mixed run, with their calls; empty for other runs."""
    if not mixed(summary["methods"]):
        return ""
    stated = [
        f"{name}: {', '.join(f'{model} ({calls})' for model, calls in figures.get('models', {}).items()) or 'unknown'}"
        for name, figures in summary["methods"].items()
    ]
    return f"**Mixed models**: not every call was answered by the same model, in calls {'; '.join(stated)}."


def completeness(summary: Summary) -> str:
    """States how many answers are missing, because they failed or were not reached; empty for a complete run."""
    lacking = [
        f"{name} answered {figures['answered']} of {figures['n']}, {figures['errors']} failed"
        for name, figures in summary["methods"].items()
        if figures["answered"] < figures["n"]
    ]
    return f"**Answers are missing, and scores are over the others**: {'; '.join(lacking)}." if lacking else ""
