"""A benchmark from its plan to its folder: run, replayed or rescored, then summarised, reported and recorded."""

import asyncio
import hashlib
import json
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.cli.shared.command import complain, run, say
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.journal import records
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.llm.stages import runs_here

from ..analyses import discover_analyses
from ..judge import Judge
from ..metrics import scorer_named
from ..recording import UNFINISHED, Recording, table_content
from ..report.document import of_the_packaged_model, write_report
from ..report.figures import show
from ..report.published import protocol
from ..rows.samples import official_predictions, require_whole, rescored
from ..rows.summary import CONVENTIONS, summarise
from .arms import arm_settings
from .config import RunConfig, RunOptions
from .display import Display, DisplayName
from .evidence import open_domain
from .execution import RunOutcome, TooManyFailuresError, execute
from .folder import REPORT, SAMPLES, SUMMARY, RunFolder
from .plan import RunPlan, check_recordable
from .provenance import carried_settings, differing, recorded_run, run_config
from .sampling import shard_numbers

_JUDGED_AT_ONCE = 8


class NoAnswerError(MetaRagError):
    """A row of a run's table has no answer at all."""

    exit_code = 1


class OtherBytesError(MetaRagError):
    """A replay produced a summary that differs from the recorded one."""

    exit_code = 1


def benchmark(
    plan: RunPlan, options: RunOptions, folder: RunFolder | None, output_dir: Path, display_name: DisplayName
) -> Path:
    """Run or continue a benchmark; returns its folder. Raises what stopped it, after saving everything."""
    config = plan.config
    if options.recorder is not None:
        check_recordable(config)
    about = run_config(config, plan.loaded, plan.sample)
    begun = folder is not None
    folder = folder or new_folder(config, output_dir, about)
    with folder.locked():
        return _benchmark(plan, options, folder, about, display_name, begun=begun)


def _benchmark(
    plan: RunPlan,
    options: RunOptions,
    folder: RunFolder,
    about: Mapping[str, Any],
    display_name: DisplayName,
    *,
    begun: bool,
) -> Path:
    config, recording = plan.config, options.recording
    if begun:
        if changed := differing(folder.config(), json.loads(json.dumps(about, default=str))):
            raise InputError(
                f"The run {folder.path.name!r} was started with different {' and '.join(changed)}; "
                "continue with the same, or start a new run."
            )
        folder.note_limit(config.settings.cost_limit_usd)
        if mixed := folder.note_code(about):
            complain(mixed)
        require_whole(folder.rows().values(), folder.path / SAMPLES)
        if options.recorder is None:  # what follows is not recorded, so that the record would lack it
            (folder.path / UNFINISHED).unlink(missing_ok=True)
    if options.recorder is not None:
        names = [analysis.name for analysis in discover_analyses()]
        rows = table_content(config.arms, quadrants=_deficits(config), analyses=names)
        described = {**recorded_run(about), **rows, "conventions": CONVENTIONS}
        options.recorder.begin(described, plan.questions, folder.path, set(folder.rows()))
    try:
        outcome = _outcome(plan, options, folder, Display(display_name, free=runs_here(config.settings)))
        summary = write_results(config, folder, outcome.rows, plots=options.plots, recording=recording)
        say_results(config, folder, summary, display_name)
        if outcome.stopped_by is None:
            _close_record(options, folder, visible=display_name not in ("json", "none"))
        _end(plan, options, folder, outcome, summary)
    finally:
        if options.recorder is not None:
            options.recorder.close()
    return folder.path


def new_folder(config: RunConfig, output_dir: Path, about: Mapping[str, Any]) -> RunFolder:
    """The folder of a run that begins now."""
    mode = config.mode if config.shard is None else f"{config.mode}-shard-{config.shard.replace('/', '-of-')}"
    return RunFolder.create(output_dir, at=datetime.now(UTC), dataset=config.dataset, mode=mode, config=about)


def write_results(
    config: RunConfig,
    folder: RunFolder,
    rows: Sequence[Mapping[str, Any]],
    *,
    plots: bool,
    recording: Recording | None = None,
) -> dict[str, Any]:
    """Write the results so far of a folder's questions; returns the summary, by the conventions of a record if any."""
    about = folder.config()
    number, count = (1, 1) if config.shard is None else shard_numbers(config.shard)
    by_record: dict[str, Any] = {}
    if recording is not None:  # it keeps its own table, so that replaying it needs no deficit or price of today
        by_record = {
            "analyses": recording.run["analyses"],
            "tariffs": recording.tariffs,
            "conventions": recording.run.get("conventions", 1),
        }
    summary = summarise(
        rows,
        dataset=config.dataset,
        mode=config.mode,
        n=len(range(number - 1, about["sample"]["questions"], count)),
        seed=config.seed,
        arms=config.arms,
        deficits=_deficits(config) if recording is None else recording.quadrants,
        **by_record,
    )
    folder.write_json(SUMMARY, summary)
    for place, arm in enumerate(config.arms):
        own = [row for row in rows if row["method"] == arm.name]
        file = "predictions.json" if place == 0 else f"predictions-{_file_name(arm.name, place)}.json"
        folder.write_json(file, official_predictions(own))
    ours = protocol(config, n=summary["n"], pooled=about["sample"]["pooled"])
    caveat = " ".join(filter(None, [folder.mixed_code(), *changed_models(rows)]))
    write_report(folder, config, summary, rows, arms=config.arms, protocol=ours, plots=plots, caveat=caveat)
    return summary


def say_results(config: RunConfig, folder: RunFolder, summary: dict[str, Any], display_name: DisplayName) -> None:
    """Print the score table and the run folder, or one JSON object, or nothing, as the display demands."""
    if display_name == "json":
        say(json.dumps({"run": str(folder.path), "summary": summary}, ensure_ascii=False))
    elif display_name != "none":
        show(config, summary)
        say(f"Run folder: {folder.path}")
        if packaged := of_the_packaged_model(summary):
            complain(packaged)


def with_corpus(plan: RunPlan) -> None:
    """Build the corpus that an `open_domain` run pools from its data file, if it does not exist yet."""

    async def built() -> None:
        async with open_domain(plan.config, plan.loaded, None):
            pass

    run(built())


def rescore(
    config: RunConfig,
    earlier: RunFolder,
    given: frozenset[str],
    *,
    scorer: str | None,
    output_dir: Path,
    plots: bool,
    display_name: DisplayName,
) -> Path:
    """Score the answers of an earlier run into a new folder; its cost limit counts that run's calls too.

    `given` are the settings of this command line, for the judge. An answer that has a verdict keeps it, unless they
    differ from the run's. Raises `InputError` if the run has no answer, and what stopped the judge, after saving
    everything.
    """
    before = earlier.config()
    settings = carried_settings(config.settings, before["settings"], given)
    own = replace(config, settings=settings).as_begun(before["experiment"])
    own = replace(
        own, judge=config.judge or own.judge, scorer=scorer or own.scorer, model_words=before.get("model_words", "")
    )
    found = list(earlier.rows().values())
    require_whole(found, earlier.path / SAMPLES)
    if not any(row["error"] is None for row in found):
        raise InputError(f"The run {earlier.path.name!r} has no answers to score; continue it with --resume first.")
    score = scorer_named(own.scorer)
    rows = [rescored(row, score) if row["error"] is None else dict(row) for row in found]
    about = {**before, "experiment": own.experiment, "rescored": earlier.path.name}
    folder = new_folder(own, output_dir, {**about, "settings": settings.model_dump(mode="json")})
    folder.write_calls(row for _, row in records(earlier.calls) if row is not None)
    now = settings.model_dump(mode="json")
    if differing(before, {**before, "settings": now}):
        for row in rows:
            row["judge"] = None
    for row in rows:  # a verdict replaces them one by one, so that a kill loses none
        folder.add(row)
    stopped_by = run(_judge_all(own, folder, rows)) if own.judge else None
    folder.close()
    folder.compact()
    summary = write_results(own, folder, rows, plots=plots)
    say_results(own, folder, summary, display_name)
    if stopped_by is not None:
        raise stopped_by
    return folder.path


async def _judge_all(config: RunConfig, folder: RunFolder, rows: Sequence[dict[str, Any]]) -> MetaRagError | None:
    """Add the verdicts that are missing; returns the error that stopped the judge, if any."""
    stopped_by: list[MetaRagError] = []
    async with open_language_model(
        config.settings, ledger_path=folder.calls, paid_usd=folder.paid_usd(), reservations=folder.reservations
    ) as model:
        judge, free = Judge(model=model), asyncio.Semaphore(config.concurrency or _JUDGED_AT_ONCE)

        async def judged(row: dict[str, Any]) -> None:
            row.setdefault("judge", None)
            asked = Question(
                id=row["id"], text=row["question"], answer=row["gold"], aliases=tuple(row["aliases"]), paragraphs=()
            )
            async with free:
                if row["judge"] is not None or stopped_by:
                    return
                try:
                    row["judge"] = await judge.verdict(asked, row["prediction"])
                    folder.add(row)
                except MetaRagError as error:
                    stopped_by.append(error)

        await asyncio.gather(*(judged(row) for row in rows if row["error"] is None))
    return stopped_by[0] if stopped_by else None


def changed_models(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each model name under which the server answered with more than one model during the run."""
    answered: dict[str, Counter[str]] = {}
    for call in (call for row in rows for call in row.get("usage", ()) if call.get("answered_by")):
        answered.setdefault(call["model"], Counter())[call["answered_by"]] += 1
    return [
        f"The model behind {name!r} changed within the run, in calls: "
        f"{', '.join(f'{model} {count}' for model, count in sorted(counts.items()))}."
        for name, counts in answered.items()
        if len(counts) > 1
    ]


def _interrupt(*_: object) -> None:
    """End as cleanly as on Ctrl+C, even if a shell's `nohup ... &` made the process ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _outcome(plan: RunPlan, options: RunOptions, folder: RunFolder, shown: Display) -> RunOutcome:
    """Answer the questions, or take the answers of a record; on Ctrl+C and SIGTERM, stop and say how to continue."""
    recording = options.recording
    if recording is not None:
        rows = tuple(recording.rows())
        shown.start(len(rows), ())
        for row in rows:
            folder.add(row)
            shown.row(row)
        shown.stop()
        folder.close()
        folder.write_calls(recording.calls)
        return RunOutcome(rows=rows)
    signal.signal(signal.SIGTERM, _interrupt)
    work = execute(plan.config, options, plan.loaded, questions=plan.questions, folder=folder, display=shown)
    try:
        return run(work)
    except KeyboardInterrupt:
        shown.stop()
        again = "" if options.recorder is None else f" --record {options.recorder.path}"
        complain(f"Stopped. Continue with: --resume {folder.path}{again}")
        raise typer.Exit(130) from None


def _close_record(options: RunOptions, folder: RunFolder, *, visible: bool) -> None:
    """Write the record of a complete run; compare a replay with the recorded summary."""
    sha256 = hashlib.sha256((folder.path / SUMMARY).read_bytes()).hexdigest()
    if options.recorder is not None:
        options.recorder.finish(sha256)
        said = f"Record: {options.recorder.path}"
    elif options.recording is not None:
        if sha256 != options.recording.summary_sha256:
            raise OtherBytesError(
                f"The replay's {SUMMARY} differs from the recorded one: the code that computes it has changed since "
                f"{options.recording.path.name} was made, or that file was altered; compare the two."
            )
        said = f"Replayed without a call: {SUMMARY} equals the recorded one, byte for byte."
    else:
        return
    if visible:
        say(said)


def _end(
    plan: RunPlan, options: RunOptions, folder: RunFolder, outcome: RunOutcome, summary: Mapping[str, Any]
) -> None:
    """Say what went wrong and how to continue; raises what stopped the run, or if a row has no answer."""
    failed = [row for row in outcome.rows if row["error"] is not None]
    wanted = len(plan.questions) * len(plan.config.arms)
    for sentence in changed_models(outcome.rows):
        complain(sentence)
    if outcome.stopped_by is not None:
        again = " --retry-failed" if isinstance(outcome.stopped_by, TooManyFailuresError) else ""
        again += "" if options.recorder is None else f" --record {options.recorder.path}"
        answered = len(outcome.rows) - len(failed)
        complain(f"Stopped after {answered} of {wanted} answers. Continue with: --resume {folder.path}{again}")
        raise outcome.stopped_by
    if failed:
        complain(
            f"{len(failed)} of {wanted} answers failed; {folder.path / REPORT} lists them. "
            f"Retry them with: --resume {folder.path} --retry-failed"
        )
    require_answers(summary, failed)


def require_answers(summary: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> None:
    """Raise `NoAnswerError` if a row of the table has no answer at all."""
    if empty := [name for name, figures in summary["methods"].items() if not figures["answered"]]:
        first = next(row for row in failed if row["method"] == empty[0])
        raise NoAnswerError(f"{' and '.join(empty)} answered no question; the first failed with {first['error']}")


def _deficits(config: RunConfig) -> dict[str, tuple[bool, bool] | None]:
    """The deficits of all rows by name, with their quadrants."""
    folders = dict.fromkeys(arm_settings(arm, config.settings).deficits_dir for arm in config.arms)
    return {deficit.name: deficit.quadrant for folder in folders for deficit in discover_deficits(folder)}


def _file_name(name: str, number: int) -> str:
    """A row's name as a file name; if it is not valid as one, with the row's number, so that names stay unique."""
    plain = "".join(char if char.isalnum() or char in "-_.=+#" else "_" for char in name)[:100]
    return plain if plain == name else f"{plain}-{number + 1}"
