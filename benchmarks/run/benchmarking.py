"""A benchmark from its configuration to its folder: checked, run, summed up, reported."""

import hashlib
import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.monitoring.calibration import calibration_in_force, refuse_fitted_questions
from meta_agent_rag.cli.shared.command import complain, run, say
from meta_agent_rag.datasets import LoadedQuestions, Question, load_questions
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.providers import choose_provider, runs_here

from ..analyses import discover_analyses
from ..recording import Player, table_content
from ..report import protocol, show, write_report
from ..rows.samples import official_predictions
from ..rows.shape import require_whole
from ..rows.summary import summarise
from .arms import arm_settings, check_arms
from .config import Conduct, RunConfig
from .display import DisplayName, Silent, display
from .execution import RunOutcome, execute
from .folder import REPORT, SAMPLES, SUMMARY, RunFolder
from .protocols import Protocol
from .provenance import (
    OWN_FILES,
    RECORDED_FILES,
    as_begun,
    changed_files,
    changed_settings,
    recorded_run,
    recorded_settings,
    run_config,
)
from .sampling import by_id, by_position, draw

DEFAULT_N = 50
_LISTED = 3
"""Changed prompts that are named."""


class AllFailedError(MetaRagError):
    """No question of a run could be answered."""


class OtherBytesError(MetaRagError):
    """A replay came to another summary than the run that was recorded."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A run that has been checked: its configuration, its questions, and what they were drawn from."""

    config: RunConfig
    loaded: LoadedQuestions
    questions: tuple[Question, ...]
    pooled: int


def resumed(config: RunConfig, folder: RunFolder) -> RunConfig:
    """The configuration of an earlier run with today's limits; settings that shape answers must be the same."""
    before = folder.config()
    changed = changed_settings(before["settings"], config.settings.model_dump(mode="json"))
    if changed:
        raise InputError(
            f"The run {folder.path.name!r} was started with different values of {', '.join(changed).upper()}; "
            "resume it with those values, or start a new run."
        )
    return as_begun(config, before["experiment"])


def planned(config: RunConfig) -> RunPlan:
    """Check a configuration and load its questions; nothing is written and no model is asked."""
    _check(config)
    loaded = load_questions(config.dataset, data_file=config.data_file, aliases_file=config.aliases_file)
    questions = _questions(config, loaded)
    _check_calibration(config, questions)
    words = described(choose_provider(config.settings), config.settings)
    return RunPlan(
        config=replace(config, model_words=words), loaded=loaded, questions=questions, pooled=len(loaded.questions)
    )


def replayed(config: RunConfig, player: Player, *, strict: bool) -> RunPlan:
    """The plan of a recorded run: data set, questions, methods, seed and settings are the record's.

    Where `strict`, today's code makes the rows of its table; else they are the record's too.
    """
    record = player.run
    own = replace(
        as_begun(config, record["experiment"]),
        settings=recorded_settings(record),
        model_words=record["model_words"],
        recorded=record,
        recorded_arms=() if strict else player.arms,
    )
    _check_recordable(own)
    if strict:
        _check(own)
    source = record["dataset"]
    loaded = LoadedQuestions(
        questions=player.questions,
        source=source["source"],
        sha256=source["sha256"],
        aliases_sha256=source["aliases_sha256"],
    )
    return RunPlan(config=own, loaded=loaded, questions=player.questions, pooled=record["pooled"])


def benchmark(
    plan: RunPlan, conduct: Conduct, folder: RunFolder | None, output_dir: Path, display_name: DisplayName
) -> Path:
    """Run, or continue, a benchmark; returns its folder. Raises what stopped it, once all is saved."""
    config = plan.config
    if conduct.recorder is not None and conduct.player is None:
        _check_recordable(config)
    about = run_config(config, plan.loaded)
    if folder is None:
        now = datetime.now(UTC)
        folder = RunFolder.create(output_dir, at=now, dataset=config.dataset, mode=config.mode, config=about)
    else:
        folder.require_same(about)
        require_whole(folder.rows().values(), folder.path / SAMPLES)
    if conduct.recorder is not None and conduct.player is None:
        described = recorded_run(about, pooled=plan.pooled, model_words=config.model_words)
        conduct.recorder.begin({**described, **_table(plan, conduct)}, plan.questions)
    try:
        outcome = _carried_out(plan, conduct, folder, display(display_name, free=runs_here(plan.config.settings)))
        summary = _write(plan, conduct, folder, outcome)
        _say(plan, folder, summary, display_name)
        _complain(plan, conduct, folder, outcome)
        _close_record(plan, conduct, folder, outcome, display_name)
    finally:
        if conduct.recorder is not None:
            conduct.recorder.close()
    return folder.path


def _carried_out(plan: RunPlan, conduct: Conduct, folder: RunFolder, shown: Silent) -> RunOutcome:
    """Answer the questions; Ctrl+C and SIGTERM end that with a word on how to go on."""
    if conduct.player is not None and not conduct.strict:
        return _from_record(conduct.player, folder, shown)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run(execute(plan.config, conduct, plan.loaded, questions=plan.questions, folder=folder, display=shown))
    except KeyboardInterrupt:
        shown.stop()
        complain(f"Stopped. Continue with: --resume {folder.path}")
        raise typer.Exit(130) from None


def _from_record(player: Player, folder: RunFolder, shown: Silent) -> RunOutcome:
    """The answers of a record, scored now: nothing is asked, searched or derived."""
    rows = tuple(player.rows())
    shown.start(len(rows), ())
    for row in rows:
        folder.add(row)
        shown.row(row)
    shown.stop()
    folder.close()
    folder.write_calls(player.calls())
    return RunOutcome(rows=rows, deficits=tuple(sorted(player.quadrants)))


def _interrupt(*_: object) -> None:
    """End as cleanly as Ctrl+C does, also where a shell's `nohup ... &` left that ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _check(config: RunConfig) -> None:
    """Refuse what cannot work before anything is written."""
    check_arms(config.arms, config.settings)
    if config.concurrency is not None and config.concurrency < 1:
        raise InputError(f"--concurrency must be at least 1, not {config.concurrency}.")
    if sum(given is not None and given != () for given in (config.n, config.limit, config.sample_ids)) > 1:
        raise InputError("--n, --limit and --sample-id are mutually exclusive; give one of them.")
    if config.corpus is not None and config.mode != "open_domain":
        raise InputError(f"--corpus requires --mode open_domain, but the mode is {config.mode!r}.")
    if config.corpus is not None and "diagnosis" in config.oracles:
        raise InputError("--oracle diagnosis only knows the data set's own paragraphs; leave --corpus out.")


def _check_recordable(config: RunConfig) -> None:
    """A record is complete in itself: it holds no files of the user's own."""
    varied = {assignment.partition("=")[0].strip().lower() for assignment in _assignments(config)}
    for name in OWN_FILES:
        if getattr(config.settings, name) is not None or name in varied:
            raise InputError(
                f"A record does not contain the files of {name.upper()}, so a replay would lack them; record a run "
                f"without {name.upper()}."
            )


def _assignments(config: RunConfig) -> tuple[str, ...]:
    return (*config.sweeps, *(assignment for arm in config.arms for assignment in arm.assignments))


def _check_calibration(config: RunConfig, questions: Sequence[Question]) -> None:
    """Refuse a fitted monitor on the questions that it was fitted on: its figures would flatter it."""
    for arm in config.arms:
        settings = arm_settings(arm, config.settings)
        if settings.monitor_policy == "calibrated":
            refuse_fitted_questions(
                calibration_in_force(settings), config.dataset, [(question.id, question.text) for question in questions]
            )


def _questions(config: RunConfig, loaded: LoadedQuestions) -> tuple[Question, ...]:
    if config.sample_ids:
        return by_id(loaded.questions, config.sample_ids)
    if config.limit is not None:
        return by_position(loaded.questions, config.limit)
    return draw(loaded.questions, DEFAULT_N if config.n is None else config.n, config.seed)


def _write(plan: RunPlan, conduct: Conduct, folder: RunFolder, outcome: RunOutcome) -> dict[str, Any]:
    """Write what there is."""
    config = plan.config
    names = [arm.name for arm in config.arms]
    summary = summarise(
        outcome.rows,
        dataset=config.dataset,
        mode=config.mode,
        methods=names,
        n=len(plan.questions),
        seed=config.seed,
        deficits=outcome.deficits,
        arms=config.arms,
        quadrants=_quadrants(plan, conduct),
        analyses=_analyses(conduct),
        tariffs=None if conduct.player is None or conduct.recorder is not None else conduct.player.tariffs,
    )
    folder.write_json(SUMMARY, summary)
    for number, name in enumerate(names):
        rows = [row for row in outcome.rows if row["method"] == name]
        file = "predictions.json" if number == 0 else f"predictions-{_file_name(name, number)}.json"
        folder.write_json(file, official_predictions(rows))
    ours = _protocol(plan)
    write_report(folder, config, summary, outcome.rows, arms=config.arms, ours=ours, plots=conduct.plots)
    return summary


def _analyses(conduct: Conduct) -> tuple[str, ...]:
    """Those that a record names, so that its summary has the same figures; all where a summary is made for keeps."""
    player = conduct.player
    if player is None or conduct.recorder is not None or "analyses" not in player.run:
        return tuple(analysis.name for analysis in discover_analyses())
    return tuple(player.run["analyses"])


def _table(plan: RunPlan, conduct: Conduct) -> dict[str, Any]:
    """What a record says of the run's table."""
    return table_content(plan.config.arms, quadrants=_quadrants(plan, conduct), analyses=_analyses(conduct))


def _quadrants(plan: RunPlan, conduct: Conduct) -> Mapping[str, tuple[bool, bool] | None]:
    """Of the deficits of all rows."""
    config, player = plan.config, conduct.player
    if player is not None and not conduct.strict:
        return player.quadrants
    folders = dict.fromkeys(arm_settings(arm, config.settings).deficits_dir for arm in config.arms)
    return {deficit.name: deficit.quadrant for folder in folders for deficit in discover_deficits(folder)}


def _protocol(plan: RunPlan) -> Protocol:
    return protocol(plan.config, n=len(plan.questions), pooled=plan.pooled)


def _file_name(name: str, number: int) -> str:
    """A row's name for a file; where it cannot be one, with the row's number, so that no two are the same."""
    plain = "".join(char if char.isalnum() or char in "-_.=+#" else "_" for char in name)[:100]
    return plain if plain == name else f"{plain}-{number + 1}"


def _say(plan: RunPlan, folder: RunFolder, summary: dict[str, Any], display_name: DisplayName) -> None:
    if display_name == "json":
        say(json.dumps({"run": str(folder.path), "summary": summary}, ensure_ascii=False))
    elif display_name != "none":
        show(plan.config, summary, _protocol(plan))
        say(f"Run folder: {folder.path}")


def _complain(plan: RunPlan, conduct: Conduct, folder: RunFolder, outcome: RunOutcome) -> None:
    failed = [row for row in outcome.rows if row["error"] is not None]
    wanted = len(plan.questions) * len(plan.config.arms)
    if outcome.stopped_by is not None:
        if conduct.player is not None:
            for line in _changes(plan, conduct.player):
                complain(line)
        answered = len(outcome.rows) - len(failed)
        complain(f"Stopped after {answered} of {wanted} answers. Continue with: --resume {folder.path}")
        raise outcome.stopped_by
    if failed and len(failed) == wanted:
        raise AllFailedError(f"Every question failed, the first with {failed[0]['error']}")
    if failed:
        complain(
            f"{len(failed)} of {wanted} answers failed; {folder.path / REPORT} lists them. "
            f"Ask them again with: --resume {folder.path} --retry-failed"
        )


def _close_record(
    plan: RunPlan, conduct: Conduct, folder: RunFolder, outcome: RunOutcome, display_name: DisplayName
) -> None:
    """Write the record of a complete run; hold a replay to the summary that was recorded.

    A replay that is recorded keeps the old calls beside today's summary.
    """
    sha256 = hashlib.sha256((folder.path / SUMMARY).read_bytes()).hexdigest()
    recorder, player = conduct.recorder, conduct.player
    told = []
    if recorder is not None and player is not None:
        about = run_config(plan.config, plan.loaded)
        files = {name: about[name] for name in RECORDED_FILES}
        recorder.sign(player, {**player.run, **files, **_table(plan, conduct)}, outcome.rows, sha256)
        told.append(f"Record: {recorder.path}")
    elif recorder is not None:
        recorder.finish(sha256)
        told.append(f"Record: {recorder.path}")
    elif player is not None and sha256 != player.summary_sha256:
        raise OtherBytesError(
            f"The replay's {SUMMARY} is not the one that was recorded: the code that sums up has changed since "
            f"{player.path.name} was made; compare the two, then keep the new one with --replay ... --record FILE."
        )
    elif player is not None:
        told.append(f"Replayed without a call: {SUMMARY} equals the recorded one, byte for byte.")
        told += [] if conduct.strict else _changes(plan, player)
    if display_name not in ("json", "none"):
        for sentence in told:
            say(sentence)


def _changes(plan: RunPlan, player: Player) -> list[str]:
    """One line where prompts or deficits are others today than in the record; nothing where they are the same."""
    changed = changed_files(player.run, plan.config.settings)
    if not changed:
        return []
    more = f"; and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
    return [f"{player.path.name} has other prompts than today's: {'; '.join(changed[:_LISTED])}{more}."]
