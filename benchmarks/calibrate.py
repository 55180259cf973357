"""Fit the monitor's policy on runs, or evaluate a fitted one on others: `python -m benchmarks.calibrate --help`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from meta_agent_rag.agent.calibration import (
    Calibration,
    is_satisfied,
    probability,
    read_calibration,
    refuse_fitted_questions,
)
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError

from .calibration import FirstDraft, Fit, Quality, first_drafts, fit, quality
from .rows.past_run import PastRun, past_run

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(  # options of a command
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
    encoder, models = str(found[0].setting("monitor_encoder")), found[0].models
    said = [f"{len(drafts)} first drafts, {sum(draft.right for draft in drafts)} of them correct."]
    said.append(f"Models: {_named(models)}")
    reported: dict[str, Any] = {"n": len(drafts), "right": sum(draft.right for draft in drafts), "models": dict(models)}
    if evaluate is not None:
        calibration = read_calibration(evaluate)
        measured = _evaluated(evaluate, calibration, drafts, encoder)
        fitted_with = calibration.fitted_on.models
        reported["fitted_with"] = dict(fitted_with)
        said.append(f"Fitted with: {_named(fitted_with)}")
    else:
        assert out is not None
        names = [run.name for run in found]
        fitted = fit(drafts, encoder=encoder, runs=names, models=models, method=method)
        _write(out, fitted.calibration)
        measured = fitted.quality
        reported |= {"out": str(out), "threshold": fitted.calibration.threshold, "repairs": asdict(fitted.repairs)}
        said.append(_break_even(fitted))
    if as_json:
        print_json({**reported, "monitors": [asdict(measured)]})
        return
    say("\n".join(said))
    _table(measured)
    if out is not None:
        say(f"\nWritten: {out}\nUse it with MONITOR_CALIBRATION={out}, on other questions.")


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


def _evaluated(file: Path, calibration: Calibration, drafts: Sequence[FirstDraft], encoder: str) -> Quality:
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
    return quality(f"{file.name}, from {calibration.threshold:g}", drafts, chances, satisfied)


def _write(out: Path, calibration: Calibration) -> None:
    text = yaml.safe_dump(calibration.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f"# Fitted by `marag bench calibrate`; read by MONITOR_CALIBRATION.\n{text}", encoding="utf-8")


def _break_even(fitted: Fit) -> str:
    happened, line = fitted.repairs, fitted.calibration.threshold
    return (
        f"Repairs fixed {happened.fixed} of {happened.wrong} incorrect drafts and broke {happened.broken} of "
        f"{happened.right} correct ones:\n"
        f"they pay off if p_correct is below {happened.break_even:.3f}. Threshold: {line:g}."
    )


def _table(one: Quality) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from meta_agent_rag.cli.shared.command import plain

    table = Table("monitor", "AUROC", "ECE", "fires", "on wrong", "on right", box=SIMPLE_HEAD, show_edge=False)
    area = "-" if one.auroc is None else f"{one.auroc:.3f}"
    shares = ("-" if share is None else f"{share:.0%}" for share in (one.fires, one.catches, one.disturbs))
    table.add_row(plain(one.name), area, f"{one.ece:.3f}", *shares)
    console = Console(highlight=False)
    console.print()
    console.print(table)


if __name__ == "__main__":
    app()
