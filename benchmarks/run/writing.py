"""The output files of a run: summary, predictions, tables and report."""

from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.deficits import discover_deficits

from ..analyses import discover_analyses
from ..recording import table_content
from ..report import protocol, write_report
from ..rows.samples import official_predictions
from ..rows.summary import summarise
from .arms import arm_settings
from .config import Conduct, RunConfig
from .folder import SUMMARY, RunFolder


def write_results(
    config: RunConfig,
    conduct: Conduct,
    folder: RunFolder,
    rows: Sequence[Mapping[str, Any]],
    *,
    deficits: Sequence[str],
    n: int,
    pooled: int,
) -> dict[str, Any]:
    """Write the results so far of `n` questions, drawn from `pooled`; returns the summary."""
    names = [arm.name for arm in config.arms]
    summary = summarise(
        rows,
        dataset=config.dataset,
        mode=config.mode,
        methods=names,
        n=n,
        seed=config.seed,
        deficits=deficits,
        arms=config.arms,
        quadrants=_quadrants(config, conduct),
        analyses=_analyses(conduct),
        tariffs=None if conduct.player is None or conduct.recorder is not None else conduct.player.tariffs,
    )
    folder.write_json(SUMMARY, summary)
    for number, name in enumerate(names):
        own = [row for row in rows if row["method"] == name]
        file = "predictions.json" if number == 0 else f"predictions-{_file_name(name, number)}.json"
        folder.write_json(file, official_predictions(own))
    ours = protocol(config, n=n, pooled=pooled)
    write_report(
        folder, config, summary, rows, arms=config.arms, ours=ours, plots=conduct.plots, caveat=folder.mixed_code()
    )
    return summary


def recorded_table(config: RunConfig, conduct: Conduct) -> dict[str, Any]:
    """What a record says of the run's table."""
    return table_content(config.arms, quadrants=_quadrants(config, conduct), analyses=_analyses(conduct))


def _analyses(conduct: Conduct) -> tuple[str, ...]:
    """The analyses that a record names, so that its summary has the same figures; otherwise all."""
    player = conduct.player
    if player is None or conduct.recorder is not None or "analyses" not in player.run:
        return tuple(analysis.name for analysis in discover_analyses())
    return tuple(player.run["analyses"])


def _quadrants(config: RunConfig, conduct: Conduct) -> Mapping[str, tuple[bool, bool] | None]:
    """The quadrants of the deficits of all rows."""
    if conduct.player is not None and not conduct.strict:
        return conduct.player.quadrants
    folders = dict.fromkeys(arm_settings(arm, config.settings).deficits_dir for arm in config.arms)
    return {deficit.name: deficit.quadrant for folder in folders for deficit in discover_deficits(folder)}


def _file_name(name: str, number: int) -> str:
    """A row's name as a file name; if it is not valid as one, with the row's number, so that names stay unique."""
    plain = "".join(char if char.isalnum() or char in "-_.=+#" else "_" for char in name)[:100]
    return plain if plain == name else f"{plain}-{number + 1}"
