"""Fit `p_correct` on the first drafts of runs, or evaluate a fit on others: `python -m benchmarks.calibrate --help`.

A logistic regression over standardised signals. The threshold follows from what the loop did: repairs pay
if they fix more wrong drafts than they break right ones.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import TypeAdapter, ValidationError

from meta_agent_rag.agent.calibration import (
    FEATURES,
    VERSION,
    Calibration,
    FittedOn,
    Weight,
    features,
    probability,
    question_fingerprint,
    read_calibration,
    refuse_fitted_questions,
    text_fingerprint,
    weighed,
)
from meta_agent_rag.agent.state import Signals
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.wording import first_fault

from .metrics import RIGHT
from .run.folder import PastRun, Row, past_run
from .statistics import auroc, expected_calibration_error

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FOLDS = 5
FEWEST = 10
"""Minimum number of right and of wrong questions for a fit: two of each for every fold."""
_SEED = 42
_OF_A_VOTE = (
    *("share", "voters", "derived", "compared", "in_evidence", "open_facts"),
    *("of_kind", "taken_over", "abstained"),
)
_C = 0.1
"""Inverse strength of the L2 penalty: two dozen signals would overfit a few hundred drafts."""
_ORACLE = " oracle "
"""Marks the name of a row that used gold information, see `benchmarks.run.arms`."""


@app.command()
@reporting
def main(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, by path or name.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the fitted weights (YAML).")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Evaluate this file on the runs instead.")
    ] = None,
    method: Annotated[str, typer.Option(help="The method whose first drafts are used.")] = "metarag",
    output_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("RESULTS"),
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit the probability that a first draft is correct on runs, or evaluate a fit on unseen questions."""
    if (out is None) is (evaluate is None):
        raise InputError("Give --out FILE to fit, or --evaluate FILE to evaluate.")
    found = [past_run(run, output_dir) for run in runs]
    _require_alike(found)
    drafts = [draft for run in found for draft in first_drafts(run, method)]
    _require_once(drafts)
    encoder, models = str(found[0].config["settings"].get("monitor_encoder")), _models(found[0])
    told: dict[str, Any] = {"n": len(drafts), "right": sum(draft.right for draft in drafts), "models": models}
    said = [f"{told['n']} first drafts, {told['right']} of them correct.", f"Models: {_named(models)}"]
    if evaluate is not None:
        calibration = read_calibration(evaluate)
        measured = _evaluated(evaluate, calibration, drafts, encoder)
        told["fitted_with"] = dict(calibration.fitted_on.models)
        said.append(f"Fitted with: {_named(told['fitted_with'])}")
    else:
        assert out is not None
        names = [run.name for run in found]
        calibration, happened, measured = fit(drafts, encoder=encoder, runs=names, models=models, method=method)
        _write(out, calibration)
        told |= {"out": str(out), "threshold": calibration.threshold, "repairs": asdict(happened)}
        said.append(
            f"Repairs fixed {happened.fixed} of {happened.wrong} incorrect drafts and broke {happened.broken} of "
            f"{happened.right} correct ones:\nthey pay off if p_correct is below {happened.break_even:.3f}."
        )
        said.append(f"Written: {out}\nUse it with MONITOR_CALIBRATION={out}, on other questions.")
    if as_json:
        print_json({**told, "monitors": [asdict(measured)]})
        return
    area = "-" if measured.auroc is None else f"{measured.auroc:.3f}"
    said.insert(2, f"{measured.name}: AUROC {area}, ECE {measured.ece:.3f}")
    say("\n".join(said))


def _models(run: PastRun) -> dict[str, str]:
    """The models that answered, by tier; the embedded model by its file."""
    provider = run.config["provider"]
    return {tier: provider.get("embedded_model") or name for tier, name in sorted(provider["models"].items())}


def _named(models: Mapping[str, str]) -> str:
    return ", ".join(f"{tier} {name!r}" for tier, name in models.items())


_ALIKE: Mapping[str, Callable[[PastRun], str]] = {
    "MONITOR_ENCODER": lambda run: repr(run.config["settings"].get("monitor_encoder")),
    "MONITOR_SIMILARITY_THRESHOLD": lambda run: repr(run.config["settings"].get("monitor_similarity_threshold")),
    "models": lambda run: f"{_named(_models(run))} of {run.config['provider']['name']!r}",
    "commit": lambda run: repr(run.config.get("commit")),
    "mode": lambda run: repr(run.config["experiment"]["mode"]),
}
"""What runs must have in common for their drafts to be pooled, in words by aspect."""


def _require_alike(runs: Sequence[PastRun]) -> None:
    """Refuse to pool drafts of different kinds of runs: one policy does not fit two models, prompts or modes."""
    for aspect, of in _ALIKE.items():
        values = dict.fromkeys(of(run) for run in runs)
        if len(values) > 1:
            raise InputError(f"The runs differ in {aspect} ({'; '.join(values)}); give runs in which it is the same.")


@dataclass(frozen=True, kw_only=True)
class FirstDraft:
    """The monitor's signals of a question's first draft, whether it was right, and the outcome of its repair.

    `fingerprint` names its question in a calibration file by data set and id, `text` by its words alone.
    """

    dataset: str
    id: str
    question: str
    signals: Signals
    right: bool
    fired: bool
    right_at_last: bool
    fingerprint: str
    text: str


def first_drafts(run: PastRun, method: str) -> list[FirstDraft]:
    """The monitored first drafts.

    Raises `InputError` if the method has none, if a row is damaged, for a row with an oracle (gold answers
    decided about its drafts) and for a row with a swept encoder (the run's settings do not state its encoder).
    """
    if _ORACLE in method:
        raise InputError(f"{method!r} used gold answers, which a monitor never sees; name a row without an oracle.")
    if "MONITOR_ENCODER=" in method:
        raise InputError(f"{method!r} used its own encoder; give a run with --set MONITOR_ENCODER.")
    answered = [row for row in run.rows(method) if row["error"] is None and row["rounds"]]
    found = [_first_draft(run, row) for row in answered if row["rounds"][0]["signals"] is not None]
    if not found:
        raise InputError(
            f"No draft of {method!r} in the run {run.name!r} was monitored; "
            "name a method that runs the loop with --method."
        )
    return found


def _first_draft(run: PastRun, row: Row) -> FirstDraft:
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
        fingerprint=question_fingerprint(run.dataset, row["id"]),
        text=text_fingerprint(row["question"]),
    )


def _require_once(drafts: Sequence[FirstDraft]) -> None:
    """Refuse a repeated question: it would count twice and make a figure look more certain than it is."""
    held = Counter((draft.dataset, draft.id) for draft in drafts)
    twice = [f"{dataset} {id_}" for (dataset, id_), times in held.items() if times > 1]
    if twice:
        raise InputError(
            f"Two of the runs share questions ({twice[0]!r} and {len(twice) - 1} more); "
            "give runs over different questions."
        )


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """Of the first drafts that a run repaired: how many wrong ones were fixed, and how many right ones broken."""

    wrong: int
    fixed: int
    right: int
    broken: int

    @classmethod
    def of(cls, drafts: Sequence[FirstDraft]) -> "Repairs":
        """The outcomes of repaired first drafts."""
        fired = [draft for draft in drafts if draft.fired]
        return cls(
            wrong=sum(not draft.right for draft in fired),
            fixed=sum(draft.right_at_last and not draft.right for draft in fired),
            right=sum(draft.right for draft in fired),
            broken=sum(draft.right and not draft.right_at_last for draft in fired),
        )

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
    """How well a probability separates right first drafts from wrong ones, and its calibration error, in 0..1."""

    name: str
    auroc: float | None
    ece: float

    @classmethod
    def of(cls, name: str, drafts: Sequence[FirstDraft], chances: Sequence[float]) -> "Quality":
        """Evaluate the probability that each draft was given."""
        labels = [draft.right for draft in drafts]
        return cls(name=name, auroc=auroc(chances, labels), ece=expected_calibration_error(chances, labels))


def _evaluated(file: Path, calibration: Calibration, drafts: Sequence[FirstDraft], encoder: str) -> Quality:
    for dataset in dict.fromkeys(draft.dataset for draft in drafts):
        asked = [(draft.id, draft.question) for draft in drafts if draft.dataset == dataset]
        refuse_fitted_questions(calibration, dataset, asked)
    if calibration.encoder != encoder:
        raise InputError(
            f"The calibration {file.name!r} was fitted with the encoder {calibration.encoder!r}, but the runs used "
            f"{encoder!r}; give runs with that encoder."
        )
    return Quality.of(file.name, drafts, [probability(draft.signals, calibration) for draft in drafts])


def fit(
    drafts: Sequence[FirstDraft], *, encoder: str, runs: Sequence[str], models: Mapping[str, str], method: str
) -> tuple[Calibration, Repairs, Quality]:
    """Fit a calibration, independent of the order of drafts; returns it with the repairs and its quality on other data.

    The quality is cross-validated, the threshold the break-even point of repairs. `models` are the models' names by
    tier. Raises `InputError` if there are too few right or wrong questions.
    """
    ordered = sorted(drafts, key=lambda draft: (draft.fingerprint, repr(draft)))
    for word, right in (("right", True), ("wrong", False)):
        count = len({draft.text for draft in ordered if draft.right is right})
        if count < FEWEST:
            raise InputError(
                f"{count} of the first drafts of {method!r} are {word}, but a fit needs at least {FEWEST}; "
                "give more runs, or a run on more questions."
            )
    happened = Repairs.of(ordered)
    measured = Quality.of(f"calibrated, {FOLDS}-fold", ordered, _held_out(ordered))
    weights, bias = _fitted(ordered)
    calibration = Calibration(
        version=VERSION,
        encoder=encoder,
        signals=weights,
        bias=bias,
        threshold=round(happened.break_even, 4),
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
            texts=tuple(sorted({draft.text for draft in ordered})),
        ),
    )
    return calibration, happened, measured


def folds(drafts: Sequence[FirstDraft]) -> list[tuple[list[int], list[int]]]:
    """Five folds of training and test positions; a question's drafts stay together, even from several runs.

    Each fold has about the same share of right drafts.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    groups = [draft.text for draft in drafts]
    splitter = StratifiedGroupKFold(n_splits=FOLDS, shuffle=True, random_state=_SEED)
    parts = splitter.split(groups, [draft.right for draft in drafts], groups)
    return [(learned.tolist(), held_out.tolist()) for learned, held_out in parts]


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


def _write(out: Path, calibration: Calibration) -> None:
    text = yaml.safe_dump(calibration.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"# Fitted by `marag bench calibrate`; read by MONITOR_CALIBRATION.\n{text}", encoding="utf-8")


if __name__ == "__main__":
    app()
