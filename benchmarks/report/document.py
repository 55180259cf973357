"""`report.md`, with its plots as PNG and its tables as CSV and LaTeX beside it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.wording import counted

from ..plots import Plot, save
from ..run.arms import Arm, arm_settings
from ..run.config import RunConfig
from ..run.folder import REPORT, RunFolder
from ..run.protocols import Protocol
from ..tables import as_csv, as_latex, as_markdown
from .headline import completeness, headline, mixture, of_the_packaged_model
from .sections import Section, sections

PLOTS, TABLES = "plots", "tables"


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
