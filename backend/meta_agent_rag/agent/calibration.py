"""A file of fitted weights that turns the monitor's signals into `p_correct`, the probability that a draft is correct.

`vote.yaml` is the packaged one; `marag bench calibrate` writes another, and MONITOR_CALIBRATION names it. It lists the
questions that it was fitted on, so that it is not evaluated on those.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, PositiveInt, ValidationError

from ..errors import InputError, SettingsError
from ..settings import Settings, UnitFloat
from ..text.normalise import normalised
from ..wording import first_fault
from .state import Signals

VERSION = 3
_PACKAGED = Path(__file__).with_name("vote.yaml")
_REMEDY = "fit one with `marag bench calibrate`"


def features(signals: Signals) -> dict[str, float | None]:
    """The signals as numbers, by name: `None` if one is missing, with `NAME_missing` as 0 or 1 beside it."""
    measured = {
        "similarity": signals.similarity,
        "agreement": signals.agreement,
        "overlap": signals.overlap,
        "verbatim": signals.verbatim,
        "coverage": signals.coverage,
        "quoted": signals.quoted,
        "of_kind": signals.of_kind,
        "confidence": signals.confidence,
        "logprob": signals.logprob,
        "reference_logprob": signals.reference_logprob,
        "share": signals.share,
        "voters": signals.voters,
        "derived": signals.derived,
        "in_evidence": signals.in_evidence,
        "open_facts": signals.open_facts,
        "taken_over": signals.taken_over,
        "compared": signals.compared,
    }
    named: dict[str, float | None] = {}
    for name, value in measured.items():
        named[name] = None if value is None else float(value)
        named[f"{name}_missing"] = float(value is None)
    return named | {"abstained": float(signals.abstained)}


FEATURES = tuple(
    features(Signals(similarity=None, agreement=None, verbatim=None, abstained=False, evidence_passages=0))
)


def _known(signals: Mapping[str, "Weight"]) -> Mapping[str, "Weight"]:
    if strange := sorted(set(signals) - set(FEATURES)):
        raise ValueError(f"unknown signal {strange[0]!r}; choose from {', '.join(FEATURES)}")
    return signals


class Weight(BaseModel, frozen=True, extra="forbid"):
    """A signal's contribution to the log-odds: `weight` times its distance from `mean` in units of `scale`."""

    mean: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0.0)]
    weight: FiniteFloat


class FittedOn(BaseModel, frozen=True, extra="forbid"):
    """The origin of the weights: first drafts of runs, and how well the fit separated right from wrong ones.

    `questions` are fingerprints of ids and `texts` of the questions themselves; `models` are names by tier;
    `auroc` and `ece` (0..1) come from cross-validation.
    """

    datasets: tuple[str, ...]
    runs: tuple[str, ...]
    models: Mapping[str, str]
    method: str
    n: PositiveInt
    right: Annotated[int, Field(ge=0)]
    auroc: UnitFloat
    ece: UnitFloat
    questions: tuple[str, ...]
    texts: tuple[str, ...]


class Calibration(BaseModel, frozen=True, extra="forbid"):
    """A calibration file; a repair pays for a draft with a probability below `threshold`."""

    version: int
    encoder: str
    signals: Annotated[Mapping[str, Weight], Field(min_length=1), AfterValidator(_known)]
    bias: FiniteFloat
    threshold: UnitFloat
    fitted_on: FittedOn


def probability(signals: Signals, calibration: Calibration) -> float:
    """The probability, 0..1, that a draft with these signals is correct."""
    return weighed(signals, calibration.signals, calibration.bias)


def weighed(signals: Signals, weights: Mapping[str, Weight], bias: float) -> float:
    """A logistic function of the weighted sum of signals, 0..1.

    A missing signal contributes nothing; a separate weight covers its absence.
    """
    values, total = features(signals), bias
    for name, fitted in weights.items():
        value = values[name]
        if value is not None:
            total += fitted.weight * (value - fitted.mean) / fitted.scale
    return 0.5 * (1.0 + math.tanh(0.5 * total))  # the logistic function, without its overflow


def calibration_of_votes(settings: Settings) -> Calibration:
    """The calibration of MONITOR_CALIBRATION, else the packaged one; raises `SettingsError` for an unreadable file."""
    return read_calibration(settings.monitor_calibration or _PACKAGED)


def read_calibration(path: Path) -> Calibration:
    """Read a calibration file, YAML or JSON; an unchanged file is read only once.

    Raises `SettingsError` with one sentence that names the file and the fault.
    """
    try:
        status = path.stat()
        return _parsed(path.absolute(), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise SettingsError(
            f"The calibration {str(path)!r} cannot be read ({error.strerror}); check MONITOR_CALIBRATION, or {_REMEDY}."
        ) from None


@lru_cache(maxsize=8)
def _parsed(path: Path, _modified: int, _size: int) -> Calibration:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise SettingsError(f"The calibration {path.name!r} is neither YAML nor JSON; {_REMEDY}.") from None
    if not isinstance(raw, dict) or "version" not in raw:
        raise SettingsError(f"The file {path.name!r} is not a calibration: it has no 'version'; {_REMEDY}.")
    if raw["version"] != VERSION:
        raise SettingsError(
            f"The calibration {path.name!r} has version {raw['version']!r}, but version {VERSION} is needed; {_REMEDY}."
        )
    try:
        return Calibration.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(f"The calibration {path.name!r} is malformed ({first_fault(error)}); {_REMEDY}.") from None


def question_fingerprint(dataset: str, question_id: str) -> str:
    """The identifier of a question in a calibration file: 16 hex digits of the SHA-256 over data set, NUL, id."""
    return _digest(f"{dataset}\0{question_id}")


def text_fingerprint(text: str) -> str:
    """The same over a question's normalised text: it identifies the question under any id and in any data set."""
    return _digest(normalised(text) or text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def refuse_fitted_questions(calibration: Calibration, dataset: str, questions: Iterable[tuple[str, str]]) -> None:
    """Raise `InputError` if the calibration was fitted on any of these questions, which would bias the evaluation.

    `questions` are pairs of id and text; a match of either counts.
    """
    ids, texts = set(calibration.fitted_on.questions), set(calibration.fitted_on.texts)
    asked = set(questions)
    known = [id_ for id_, text in asked if question_fingerprint(dataset, id_) in ids or text_fingerprint(text) in texts]
    if known:
        raise InputError(
            f"The calibration was fitted on {len(known)} of these {len(asked)} questions of {dataset!r} (same id "
            "or text); evaluate it on others, for instance with another --seed or --limit."
        )
