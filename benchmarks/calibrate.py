"""Fit the monitor's policy on runs, or evaluate a fitted one on others: `python -m benchmarks.calibrate --help`."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import yaml
from pydantic import BaseModel, FiniteFloat, StrictStr, ValidationError

from meta_agent_rag.agent.calibration import (
    Calibration,
    is_satisfied,
    probability,
    read_calibration,
    refuse_fitted_questions,
)
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.wording import first_fault

from .calibration.fit import FirstDraft, Fit, Quality, cosine_quality, first_drafts, fit, quality
from .rows.past_run import PastRun, past_run

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(  # options of a command
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run folders, by path or name.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the fitted policy (YAML).")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Evaluate this fitted policy on the runs instead.")
    ] = None,
    method: Annotated[str, typer.Option(help="The method whose first drafts are used.")] = "metarag",
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Probability of being correct that satisfies the monitor (default: the break-even point).",
        ),
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("RESULTS"),
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a calibrated monitor policy to the first drafts of runs, or evaluate one on unseen questions."""
    if (out is None) is (evaluate is None) or (evaluate is not None and threshold is not None):
        raise InputError("Give --out FILE to fit (optionally with --threshold), or --evaluate FILE to evaluate.")
    found = [past_run(run, output_dir) for run in runs]
    _require_alike(found)
    drafts = [draft for run in found for draft in first_drafts(run, method)]
    _require_once(drafts)
    with_ = _monitor(found[0])
    models = found[0].models
    if evaluate is not None:
        calibration, measured = _evaluated(evaluate, drafts, with_.monitor_encoder)
        monitors = [measured, *cosine_quality(drafts, with_.monitor_similarity_threshold)]
        _show(drafts, monitors, models, as_json=as_json, fitted_with=calibration.fitted_on.models)
        return
    assert out is not None
    fitted = fit(
        drafts,
        encoder=with_.monitor_encoder,
        runs=[run.name for run in found],
        models=models,
        method=method,
        threshold=threshold,
    )
    _write(out, fitted.calibration)
    cosine = cosine_quality(drafts, with_.monitor_similarity_threshold)
    _show(drafts, [fitted.quality, *cosine], models, as_json=as_json, fitted=fitted, out=out)


class _Monitor(BaseModel, frozen=True):
    monitor_encoder: StrictStr
    monitor_similarity_threshold: FiniteFloat


def _monitor(run: PastRun) -> _Monitor:
    try:
        return _Monitor.model_validate(run.config["settings"])
    except ValidationError as error:
        raise InputError(
            f"The settings of the run {run.name!r} are damaged ({first_fault(error)}); run it again."
        ) from None


def _require_alike(runs: Sequence[PastRun]) -> None:
    """Refuse to pool drafts of different kinds of runs: one policy does not fit two models, prompts or modes."""
    for aspect, of in _ALIKE.items():
        values = dict.fromkeys(of(run) for run in runs)
        if len(values) > 1:
            raise InputError(f"The runs differ in {aspect} ({'; '.join(values)}); give runs in which it is the same.")


def _require_once(drafts: Sequence[FirstDraft]) -> None:
    """Refuse a repeated question: it would count twice and make a figure look more certain than it is."""
    held = Counter((draft.dataset, draft.id) for draft in drafts)
    twice = [f"{dataset} {id_}" for (dataset, id_), times in held.items() if times > 1]
    if twice:
        raise InputError(
            f"Two of the runs share questions ({twice[0]!r} and {len(twice) - 1} more); "
            "give runs over different questions."
        )


def _named(models: Mapping[str, str]) -> str:
    return ", ".join(f"{tier} {name!r}" for tier, name in models.items())


_ALIKE: Mapping[str, Callable[[PastRun], str]] = {
    "MONITOR_ENCODER": lambda run: repr(run.setting("monitor_encoder")),
    "MONITOR_SIMILARITY_THRESHOLD": lambda run: repr(run.setting("monitor_similarity_threshold")),
    "models": lambda run: f"{_named(run.models)} of {run.config['provider']['name']!r}",
    "commit": lambda run: repr(run.config.get("commit")),
    "mode": lambda run: repr(run.config["experiment"]["mode"]),
}
"""What runs must have in common for their drafts to be pooled, in words by aspect."""


def _evaluated(file: Path, drafts: Sequence[FirstDraft], encoder: str) -> tuple[Calibration, Quality]:
    calibration = read_calibration(file)
    for dataset in dict.fromkeys(draft.dataset for draft in drafts):
        asked = [(draft.id, draft.question) for draft in drafts if draft.dataset == dataset]
        refuse_fitted_questions(calibration, dataset, asked)
    if calibration.encoder != encoder:
        raise InputError(
            f"The calibration {file.name!r} was fitted with the encoder {calibration.encoder!r}, but the runs used "
            f"{encoder!r}; give runs with that encoder."
        )
    chances = [probability(draft.signals, calibration) for draft in drafts]
    satisfied = [is_satisfied(draft.signals, calibration) for draft in drafts]
    return calibration, quality(f"{file.name}, from {calibration.threshold:g}", drafts, chances, chances, satisfied)


def _write(out: Path, calibration: Calibration) -> None:
    """Write the whole file, or keep the old one."""
    text = yaml.safe_dump(calibration.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_name(f".{out.name}.unfinished")
    unfinished.write_text(f"# Fitted by `marag bench calibrate`; read by MONITOR_POLICY=calibrated.\n{text}")
    os.replace(unfinished, out)


def _show(
    drafts: Sequence[FirstDraft],
    measured: Sequence[Quality],
    models: Mapping[str, str],
    *,
    as_json: bool,
    fitted_with: Mapping[str, str] | None = None,
    fitted: Fit | None = None,
    out: Path | None = None,
) -> None:
    right = sum(draft.right for draft in drafts)
    if as_json:
        made = {} if fitted is None else {"out": str(out), "threshold": fitted.calibration.threshold}
        counted = {} if fitted is None else {"repairs": asdict(fitted.repairs)}
        origin = {} if fitted_with is None else {"fitted_with": dict(fitted_with)}
        reported = {"n": len(drafts), "right": right, "models": dict(models), **origin, **made, **counted}
        print_json({**reported, "monitors": [asdict(one) for one in measured]})
        return
    say(f"{len(drafts)} first drafts, {right} of them correct.\nModels: {_named(models)}")
    if fitted_with is not None:
        say(f"Fitted with: {_named(fitted_with)}")
    if fitted is not None:
        _say_threshold(fitted)
    _table(measured)
    if fitted is not None:
        say(f"\nWritten: {out}\nUse it with MONITOR_POLICY=calibrated MONITOR_CALIBRATION={out}, on other questions.")


def _say_threshold(fitted: Fit) -> None:
    happened, line = fitted.repairs, fitted.calibration.threshold
    say(
        f"Repairs fixed {happened.fixed} of {happened.wrong} incorrect drafts and broke {happened.broken} of "
        f"{happened.right} correct ones:"
    )
    say(f"they pay off if p_correct is below {happened.break_even:.3f}. Threshold: {line:g}.")


def _table(measured: Sequence[Quality]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from meta_agent_rag.cli.shared.command import plain

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    for cell in ("monitor", "AUROC", "ECE", "fires", "on wrong", "on right"):
        table.add_column(cell)
    for one in measured:
        area = "-" if one.auroc is None else f"{one.auroc:.3f}"
        shares = ("-" if share is None else f"{share:.0%}" for share in (one.fires, one.catches, one.disturbs))
        table.add_row(plain(one.name), area, f"{one.ece:.3f}", *shares)
    console = Console(highlight=False)
    console.print()
    console.print(table)


if __name__ == "__main__":
    app()
