"""The sections of a report, in order; empty sections are left out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from ..analyses import discover_analyses
from ..plots import Plot
from ..run.arms import Arm
from ..run.protocols import Protocol
from ..tables import Table
from .comparable import other_protocols, same_protocol
from .drawings import cost_plot, latency_plots, quality_plot
from .figures import Methods, cost, latency, quality, split, stopping, supporting, survival
from .headline import mixed

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
