"""Fit the calibrated monitor on the first drafts of runs, and evaluate a monitor on them.

A logistic regression over standardised signals. The threshold follows from what the loop did: repairs pay
if they fix more wrong drafts than they break right ones.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from meta_agent_rag.agent.calibration import (
    FEATURES,
    VERSION,
    Calibration,
    FittedOn,
    Weight,
    features,
    question_fingerprint,
    text_fingerprint,
    weighed,
)
from meta_agent_rag.agent.state import Signals
from meta_agent_rag.errors import InputError
from meta_agent_rag.wording import first_fault

from .rows.past_run import PastRun, Row
from .statistics import auroc, expected_calibration_error

FOLDS = 5
FEWEST = 10
"""Minimum number of right and of wrong questions for a fit: two of each for every fold."""
RIGHT = 0.5
"""F1 from which an answer counts as correct: exact match rejects longer or shorter forms of the gold answer."""
_SEED = 42
_OF_A_VOTE = ("share", "voters", "derived", "in_evidence", "open_facts", "of_kind", "taken_over", "abstained")
_C = 0.1
"""Inverse strength of the L2 penalty: two dozen signals would overfit a few hundred drafts."""
_ORACLE = " oracle "
"""Marks the name of a row that used gold information, see `benchmarks.run.arms`."""


@dataclass(frozen=True, kw_only=True)
class FirstDraft:
    """The monitor's signals of a question's first draft, whether it was right, and the outcome of its repair."""

    dataset: str
    id: str
    question: str
    signals: Signals
    right: bool
    fired: bool
    right_at_last: bool

    @property
    def fingerprint(self) -> str:
        """The name of its question in a calibration file."""
        return question_fingerprint(self.dataset, self.id)

    @property
    def fingerprint_of_text(self) -> str:
        """A fingerprint of its question, independent of its id."""
        return text_fingerprint(self.question)


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """Of the first drafts that a run repaired: how many wrong ones were fixed, and how many right ones broken."""

    wrong: int
    fixed: int
    right: int
    broken: int

    @property
    def break_even(self) -> float:
        """The probability of being correct below which a repair gains more than it costs.

        It pays if p_fix (1 - p) > p_break p. Both rates have add-one (Laplace) smoothing, so that a
        run in which nothing fired gives 1/2.
        """
        fix, break_ = (self.fixed + 1) / (self.wrong + 2), (self.broken + 1) / (self.right + 2)
        return fix / (fix + break_)


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How well a monitor separates right first drafts from wrong ones; all figures in 0..1.

    `fires` is the share of drafts that it sends to repair, `catches` the share of wrong ones, `disturbs` the share of
    right ones; `None` if there are no such drafts.
    """

    name: str
    auroc: float | None
    ece: float
    fires: float
    catches: float | None
    disturbs: float | None


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A calibration, the repairs that its threshold is based on, and its cross-validated quality."""

    calibration: Calibration
    repairs: Repairs
    quality: Quality


def first_drafts(run: PastRun, method: str) -> list[FirstDraft]:
    """The monitored first drafts.

    Raises `InputError` if the method has none, if a row is damaged, for a row with an oracle (gold answers
    decided about its drafts) and for a row with a swept encoder (the run's settings do not state its encoder).
    """
    if _ORACLE in method:
        raise InputError(f"{method!r} used gold answers, which a monitor never sees; name a row without an oracle.")
    if "MONITOR_ENCODER=" in method:
        raise InputError(f"{method!r} used its own encoder; give a run with --set MONITOR_ENCODER.")
    found = [draft for row in run.rows(method) if (draft := _first_draft(run, row)) is not None]
    if not found:
        raise InputError(
            f"No draft of {method!r} in the run {run.name!r} was monitored; "
            "name a method that runs the loop with --method."
        )
    return found


def _first_draft(run: PastRun, row: Row) -> FirstDraft | None:
    """The first draft of a row; `None` if it failed or was not monitored."""
    if row["error"] is not None or not row["rounds"] or row["rounds"][0]["signals"] is None:
        return None
    first = row["rounds"][0]
    try:
        signals = TypeAdapter(Signals).validate_python(first["signals"])
    except ValidationError as error:
        raise InputError(
            f"The run {run.name!r} has damaged signals, of {row['method']!r} for {row['id']!r} ({first_fault(error)}); "
            "leave this run out."
        ) from None
    return FirstDraft(
        dataset=run.dataset,
        id=row["id"],
        question=row["question"],
        signals=signals,
        right=first["f1"] >= RIGHT,
        fired=row["fired"],
        right_at_last=row["f1"] >= RIGHT,
    )


def repairs(drafts: Sequence[FirstDraft]) -> Repairs:
    """Count the outcomes of repaired first drafts."""
    fired = [draft for draft in drafts if draft.fired]
    return Repairs(
        wrong=sum(not draft.right for draft in fired),
        fixed=sum(draft.right_at_last and not draft.right for draft in fired),
        right=sum(draft.right for draft in fired),
        broken=sum(draft.right and not draft.right_at_last for draft in fired),
    )


def fit(
    drafts: Sequence[FirstDraft],
    *,
    encoder: str,
    runs: Sequence[str],
    models: Mapping[str, str],
    method: str,
) -> Fit:
    """Fit a calibration, independent of the order of drafts. `models` are the models' names by tier.

    The threshold is the break-even point of repairs. Raises `InputError` if there are too few right or wrong questions.
    """
    ordered = sorted(drafts, key=lambda draft: (draft.fingerprint, repr(draft)))
    for word, right in (("right", True), ("wrong", False)):
        count = len({draft.fingerprint_of_text for draft in ordered if draft.right is right})
        if count < FEWEST:
            raise InputError(
                f"{count} of the first drafts of {method!r} are {word}, but a fit needs at least {FEWEST}; "
                "give more runs, or a run on more questions."
            )
    happened = repairs(ordered)
    line = round(happened.break_even, 4)
    held_out = _held_out(ordered)
    satisfied = [chance >= line and not draft.signals.misses for chance, draft in zip(held_out, ordered, strict=True)]
    measured = quality(f"calibrated, {FOLDS}-fold", ordered, held_out, satisfied)
    weights, bias = _fitted(ordered)
    calibration = Calibration(
        version=VERSION,
        encoder=encoder,
        signals=weights,
        bias=bias,
        threshold=line,
        fitted_on=FittedOn(
            datasets=tuple(sorted({draft.dataset for draft in ordered})),
            runs=tuple(runs),
            models=dict(models),
            method=method,
            n=len(ordered),
            right=sum(draft.right for draft in ordered),
            auroc=round(measured.auroc or 0.0, 4),
            ece=round(measured.ece, 4),
            questions=tuple(dict.fromkeys(draft.fingerprint for draft in ordered)),
            texts=tuple(sorted({draft.fingerprint_of_text for draft in ordered})),
        ),
    )
    return Fit(calibration=calibration, repairs=happened, quality=measured)


def quality(name: str, drafts: Sequence[FirstDraft], chances: Sequence[float], satisfied: Sequence[bool]) -> Quality:
    """Evaluate a monitor by the chance (0..1) that it gives each draft, and where it is satisfied."""
    labels = [draft.right for draft in drafts]
    wrong, right = (
        [not sure for sure, label in zip(satisfied, labels, strict=True) if label is of] for of in (False, True)
    )
    return Quality(
        name=name,
        auroc=auroc(chances, labels),
        ece=expected_calibration_error([min(max(chance, 0.0), 1.0) for chance in chances], labels),
        fires=1.0 - sum(satisfied) / len(satisfied),
        catches=sum(wrong) / len(wrong) if wrong else None,
        disturbs=sum(right) / len(right) if right else None,
    )


def folds(drafts: Sequence[FirstDraft]) -> list[tuple[list[int], list[int]]]:
    """Five folds of training and test positions; a question's drafts stay together, even from several runs.

    Each fold has about the same share of right drafts.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    groups = [draft.fingerprint_of_text for draft in drafts]
    splitter = StratifiedGroupKFold(n_splits=FOLDS, shuffle=True, random_state=_SEED)
    return [
        (learned.tolist(), held_out.tolist())
        for learned, held_out in splitter.split(groups, [draft.right for draft in drafts], groups)
    ]


def _held_out(drafts: Sequence[FirstDraft]) -> list[float]:
    """Each draft's probability of being correct, from a fit on other questions."""
    chances = [0.0] * len(drafts)
    for learned, held_out in folds(drafts):
        weights, bias = _fitted([drafts[index] for index in learned])
        for index in held_out:
            chances[index] = weighed(drafts[index].signals, weights, bias)
    return chances


def _fitted(drafts: Sequence[FirstDraft]) -> tuple[dict[str, Weight], float]:
    """Weights by signal and the bias; a signal that is constant over all drafts is left out.

    For voted drafts, only signals that every route's answer has are used: only the writer has quotes and confidence.
    """
    from sklearn.linear_model import LogisticRegression

    rows = [features(draft.signals) for draft in drafts]
    voted = all(draft.signals.share is not None for draft in drafts)
    standard: dict[str, tuple[float, float]] = {}
    for name in FEATURES:
        known = [value for row in rows if (value := row[name]) is not None]
        if (not voted or name.removesuffix("_missing") in _OF_A_VOTE) and known and min(known) < max(known):
            mean = math.fsum(known) / len(known)
            standard[name] = mean, math.sqrt(math.fsum((value - mean) ** 2 for value in known) / len(known))
    if not standard:
        raise InputError(
            "All first drafts have the same signals, so nothing can be fitted; give a run over more questions."
        )
    matrix = [
        [0.0 if (value := row[name]) is None else (value - mean) / scale for name, (mean, scale) in standard.items()]
        for row in rows
    ]
    model = LogisticRegression(C=_C, max_iter=1000).fit(matrix, [draft.right for draft in drafts])
    weights = {
        name: Weight(mean=mean, scale=scale, weight=float(weight))
        for (name, (mean, scale)), weight in zip(standard.items(), model.coef_[0], strict=True)
    }
    return weights, float(model.intercept_[0])
