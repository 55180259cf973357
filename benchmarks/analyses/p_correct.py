"""How reliable p_correct is, for first drafts and for returned answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from meta_agent_rag.agent.calibration import calibration_of_votes
from meta_agent_rag.errors import SettingsError
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from ..calibration.fit import RIGHT
from ..statistics import auroc, auroc_interval, expected_calibration_error
from ..tables import Table, number, with_interval
from .analysis import Analysis, Figures, Material, Row

_OF = {"first drafts": 0, "returned answers": None}


def measure(material: Material) -> dict[str, Figures]:
    """Figures by kind of answer, for arms whose rounds have a p_correct and a vote."""
    measured: dict[str, Figures] = {}
    for arm in material.looping(without_oracle="monitor"):
        rows = [row for row in material.answered(arm) if any(_is_voted(round_) for round_ in row["rounds"])]
        if rows:
            measured[arm.name] = {name: _judged(_rounds(rows, index), material.seed) for name, index in _OF.items()}
    return measured


def _is_voted(round_: Row) -> bool:
    return round_.get("vote") is not None and round_.get("p_correct") is not None


def _rounds(rows: Sequence[Row], index: int | None) -> list[Row]:
    chosen = [row["rounds"][row["chosen"] if index is None else index] for row in rows]
    return [round_ for round_ in chosen if _is_voted(round_)]


def _judged(rounds: Sequence[Row], seed: int) -> dict[str, Any]:
    stated = [float(round_["p_correct"]) for round_ in rounds]
    right = [float(round_["f1"] >= RIGHT) for round_ in rounds]
    area, interval = auroc(stated, right), auroc_interval(stated, right, seed=seed)
    return {
        "n": len(rounds),
        "stated": round(sum(stated) / len(stated), 4) if stated else None,
        "right": round(sum(right) / len(right), 4) if right else None,
        "auroc": None if area is None else round(area, 4),
        "auroc_ci95": None if interval is None else [round(end, 4) for end in interval],
        "ece": round(expected_calibration_error(stated, right), 4) if stated else None,
    }


def tables(figures: Figures) -> Sequence[Table]:
    """Two rows per method."""
    rows = [
        (method, name, str(one["n"]), number(one["stated"], 3), number(one["right"], 3), _area(one), _ece(one))
        for method, found in figures.items()
        for name, one in found.items()
        if one["n"]
    ]
    head = ("method", "of", "n", "mean p_correct", "share correct", "AUROC [95 %]", "ECE")
    return [Table(name="p_correct", title="p_correct against the share correct", head=head, rows=rows)] if rows else []


def _area(one: Figures) -> str:
    if one["auroc"] is None:
        return "-"
    return number(one["auroc"], 3) if one["auroc_ci95"] is None else with_interval(one["auroc"], one["auroc_ci95"], 3)


def _ece(one: Figures) -> str:
    return number(one["ece"], 3)


def about_run(figures: Figures, settings: Mapping[str, Settings]) -> Sequence[str]:
    """The calibration of each row, and how far it is off there; rows with the same one share a sentence."""
    rows: dict[str, list[str]] = {}
    for name in figures:
        if name in settings and any(one["n"] for one in figures[name].values()):
            rows.setdefault(_calibration(settings[name]), []).append(name)
    return [
        f"{words}{_used_by(names) if len(rows) > 1 else ''}; {_off(figures, names)}." for words, names in rows.items()
    ]


def _calibration(settings: Settings) -> str:
    path = settings.monitor_calibration
    name = "The packaged calibration" if path is None else f"The calibration `{path.name}`"
    try:
        found = calibration_of_votes(settings)
    except SettingsError:
        return f"{name} can no longer be read"
    origin = found.fitted_on
    return (
        f"{name} was fitted with {_listed(sorted(set(origin.models.values())))} and the encoder {found.encoder} on "
        f"{counted(len(origin.questions), 'question')} of {_listed(origin.datasets)}"
    )


def _used_by(names: Sequence[str]) -> str:
    return f" (used by {_listed(names)})"


def _off(figures: Figures, names: Sequence[str]) -> str:
    """The greatest difference between stated and actual share, in percentage points."""
    measured = [(one, name, of) for name in names for of, one in figures[name].items() if one["n"]]
    one, name, of = max(measured, key=lambda found: abs(found[0]["stated"] - found[0]["right"]))
    points = 100 * (one["stated"] - one["right"])
    return (
        f"here its mean is at most {abs(points):.1f} percentage points {'above' if points >= 0 else 'below'} the share "
        f"correct ({of} of {name})"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)


_ABOUT = (
    f"An answer counts as correct if its F1 is at least {RIGHT:g}.",
    "The difference between mean p_correct and the share correct shows the calibration error,",
    "and `marag bench calibrate` fits a calibration for other models.",
)
ANALYSIS = Analysis(
    name="p_correct",
    title="The probability of being correct",
    about=_ABOUT,
    about_run=about_run,
    measure=measure,
    tables=tables,
    order=21,
)
