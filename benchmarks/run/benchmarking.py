"""A benchmark from its configuration to its folder: checked, run, summarised, reported."""

import hashlib
import json
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from meta_agent_rag.agent.calibration import calibration_in_force, refuse_fitted_questions
from meta_agent_rag.cli.shared.command import complain, run, say
from meta_agent_rag.datasets import HubAccess, LoadedQuestions, Question, discover, load_questions
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.exporting import exporting
from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.pricing import NO_CHARGE, unpriced
from meta_agent_rag.llm.stages import runs_here

from ..recording import Player
from ..report import of_the_packaged_model, protocol, show
from ..rows.allowance import DOLLARS, TOKENS
from ..rows.shape import require_whole
from .arms import arm_settings, check_arms
from .config import Conduct, RunConfig
from .display import DisplayName, Silent, display
from .evidence import open_domain
from .execution import RunOutcome, execute
from .folder import REPORT, SAMPLES, SUMMARY, RunFolder
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
from .sampling import by_id, by_position, draw, sample_digest, sharded
from .serving import as_served, paying, served_by, uses
from .writing import recorded_table, write_results

DEFAULT_N = 50
_LISTED = 3
"""Maximum number of changed prompts listed."""


class AllFailedError(MetaRagError):
    """No question of a run could be answered."""


class OtherBytesError(MetaRagError):
    """A replay produced a summary that differs from the recorded one."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A checked run: its configuration, its questions, and what they were drawn from.

    `sample` states the number of `questions` of all shards together, a digest of their ids, and the number of
    questions in the data (`pooled`).
    """

    config: RunConfig
    loaded: LoadedQuestions
    questions: tuple[Question, ...]
    sample: Mapping[str, Any]


def resumed(config: RunConfig, folder: RunFolder) -> RunConfig:
    """The configuration of an earlier run with the current limits; settings that shape answers must be the same."""
    before = folder.config()
    config = replace(config, settings=as_served(config.settings, before["settings"]))
    changed = changed_settings(before["settings"], config.settings.model_dump(mode="json"))
    if changed:
        raise InputError(
            f"The run {folder.path.name!r} was started with different values of {', '.join(changed).upper()}; "
            "resume it with those values, or start a new run."
        )
    return as_begun(config, before["experiment"])


def planned(config: RunConfig) -> RunPlan:
    """Check a configuration and load its questions; nothing is written and no model is called."""
    _check(config)
    loaded = load_questions(
        config.dataset,
        data_file=config.data_file,
        aliases_file=config.aliases_file,
        registry=discover(config.settings.datasets_dir),
        access=HubAccess(token=config.settings.hf_token, revision=config.revision),
    )
    questions = _questions(config, loaded)
    _check_calibration(config, questions)
    _check_oracles(config, questions)
    _check_evidence(config, questions)
    words = described(config.settings, uses(config))
    return RunPlan(
        config=replace(config, model_words=words),
        loaded=loaded,
        questions=questions if config.shard is None else sharded(questions, config.shard),
        sample={
            "questions": len(questions),
            "sha256": sample_digest([question.id for question in questions]),
            "pooled": len(loaded.questions),
        },
    )


def replayed(config: RunConfig, player: Player, *, strict: bool) -> RunPlan:
    """The plan of a recorded run: data set, questions, methods, seed and settings are the record's.

    If `strict`, the current code produces the rows of its table; otherwise they are taken from the record too.
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
    sample = record.get("sample", {"questions": len(player.questions), "pooled": record["pooled"]})
    return RunPlan(config=own, loaded=loaded, questions=player.questions, sample=sample)


def benchmark(
    plan: RunPlan, conduct: Conduct, folder: RunFolder | None, output_dir: Path, display_name: DisplayName
) -> Path:
    """Run or continue a benchmark; returns its folder. Raises what stopped it, after saving everything."""
    config = plan.config
    if conduct.recorder is not None and conduct.player is None:
        _check_recordable(config)
    served = run(served_by(config)) if conduct.player is None else conduct.player.run.get("endpoints", {})
    about = run_config(config, plan.loaded, served, plan.sample)
    if folder is None:
        now = datetime.now(UTC)
        mode = config.mode if config.shard is None else f"{config.mode}-shard-{config.shard.replace('/', '-of-')}"
        folder = RunFolder.create(output_dir, at=now, dataset=config.dataset, mode=mode, config=about)
    else:
        folder.require_same(about)
        if mixed := folder.note_code(about):
            complain(mixed)
        require_whole(folder.rows().values(), folder.path / SAMPLES)
    if conduct.recorder is not None and conduct.player is None:
        conduct.recorder.begin({**recorded_run(about), **recorded_table(config, conduct)}, plan.questions)
    try:
        outcome = _carried_out(plan, conduct, folder, display(display_name, free=runs_here(plan.config.settings)))
        summary = write_results(
            config,
            conduct,
            folder,
            outcome.rows,
            deficits=outcome.deficits,
            n=len(plan.questions),
            pooled=plan.sample["pooled"],
        )
        say_results(plan, folder, summary, display_name)
        _complain(plan, conduct, folder, outcome)
        _close_record(plan, conduct, folder, outcome, display_name)
    finally:
        if conduct.recorder is not None:
            conduct.recorder.close()
    return folder.path


def say_results(plan: RunPlan, folder: RunFolder, summary: dict[str, Any], display_name: DisplayName) -> None:
    """Print the score table and the run folder, or one JSON object, or nothing, as the display demands."""
    if display_name == "json":
        say(json.dumps({"run": str(folder.path), "summary": summary}, ensure_ascii=False))
    elif display_name != "none":
        show(plan.config, summary, protocol(plan.config, n=len(plan.questions), pooled=plan.sample["pooled"]))
        say(f"Run folder: {folder.path}")
        if packaged := of_the_packaged_model(summary):
            complain(packaged)


def with_corpus(plan: RunPlan) -> None:
    """Build the corpus that an `open_domain` run pools from its data file, if it does not exist yet."""

    async def built() -> None:
        async with open_domain(plan.config, plan.loaded, None):
            pass

    run(built())


def _carried_out(plan: RunPlan, conduct: Conduct, folder: RunFolder, shown: Silent) -> RunOutcome:
    """Answer the questions; on Ctrl+C and SIGTERM, stop and say how to continue."""
    if conduct.player is not None and not conduct.strict:
        return _from_record(conduct.player, folder, shown)
    signal.signal(signal.SIGTERM, _interrupt)
    work = execute(plan.config, conduct, plan.loaded, questions=plan.questions, folder=folder, display=shown)
    try:
        with exporting(plan.config.settings):
            return run(work)
    except KeyboardInterrupt:
        shown.stop()
        complain(f"Stopped. Continue with: --resume {folder.path}")
        raise typer.Exit(130) from None


def _from_record(player: Player, folder: RunFolder, shown: Silent) -> RunOutcome:
    """The answers of a record, scored now: no call, search or derivation is made."""
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
    """End as cleanly as on Ctrl+C, even if a shell's `nohup ... &` made the process ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _check(config: RunConfig) -> None:
    """Refuse impossible configurations before anything is written."""
    check_arms(config.arms, config.settings)
    if config.concurrency is not None and config.concurrency < 1:
        raise InputError(f"--concurrency must be at least 1, not {config.concurrency}.")
    if sum(given is not None and given != () for given in (config.n, config.limit, config.sample_ids)) > 1:
        raise InputError("--n, --limit and --sample-id are mutually exclusive; give one of them.")
    _check_prices(config)
    if config.corpus is not None and config.mode != "open_domain":
        raise InputError(f"--corpus requires --mode open_domain, but the mode is {config.mode!r}.")
    if config.corpus is not None and "diagnosis" in config.oracles:
        raise InputError("--oracle diagnosis covers only the data set's own paragraphs; leave --corpus out.")


def _check_prices(config: RunConfig) -> None:
    """Refuse a cost limit and equal dollars if a price is unknown, before anything is paid."""
    limited, equal = config.settings.cost_limit_usd is not None, DOLLARS in config.equals
    if not (limited or equal):
        return
    asked = paying(config)
    at = datetime.now(UTC)
    unknown = dict.fromkeys(name for settings, ones in asked for name in unpriced(ones, settings, at=at))
    wanted, instead = ("A cost limit", "leave it out") if limited else (f"--equal {DOLLARS}", f"give --equal {TOKENS}")
    if unknown:
        raise InputError(
            f"{wanted} needs prices, but the price of {', '.join(unknown)} is unknown; set PRICE_AS, or `prices: free` "
            f"in MODEL_ROLES for a server of your own, or {instead}."
        )
    if equal and all(one.provider.prices == NO_CHARGE for _, ones in asked for one in ones):
        raise InputError(f"--equal {DOLLARS} needs a model that costs something; give --equal {TOKENS}.")


def _check_evidence(config: RunConfig, questions: Sequence[Question]) -> None:
    """Refuse questions that come without evidence if no corpus is named either."""
    if config.corpus is None and not any(question.paragraphs for question in questions):
        raise InputError(
            f"The questions of {config.dataset!r} come without paragraphs; give --mode open_domain and "
            "--corpus NAME, a corpus made with `marag ingest`."
        )


def _check_recordable(config: RunConfig) -> None:
    """Refuse to record with the user's own files: a record is self-contained; no such file is run to check this."""
    _refuse_own(name for name in OWN_FILES if getattr(config.settings, name) is not None)
    varied = {assignment.partition("=")[0].strip().lower() for assignment in _assignments(config)}
    _refuse_own(name for name in OWN_FILES if name in varied)


def _refuse_own(names: Iterable[str]) -> None:
    for name in names:
        raise InputError(
            f"A record does not contain the files of {name.upper()}, so a replay would lack them; record a run "
            f"without {name.upper()}."
        )


def _assignments(config: RunConfig) -> tuple[str, ...]:
    return (*config.sweeps, *(assignment for arm in config.arms for assignment in arm.assignments))


def _check_oracles(config: RunConfig, questions: Sequence[Question]) -> None:
    """Refuse oracles without information on these questions: their rows would equal the method's own."""
    wanted = [stage for stage in ("plan", "facts") if stage in config.oracles]
    if wanted and not any(question.facts for question in questions):
        raise InputError(
            f"--oracle {','.join(wanted)} needs questions with a decomposition, which {config.dataset} does not have; "
            "use 2wikimultihopqa or musique."
        )


def _check_calibration(config: RunConfig, questions: Sequence[Question]) -> None:
    """Refuse a fitted monitor on the questions that it was fitted on: its figures would be too optimistic."""
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
    if config.n is not None and config.n > len(loaded.questions):
        complain(f"--n is {config.n}, but the data set has {len(loaded.questions)} questions; all are used.")
    return draw(loaded.questions, DEFAULT_N if config.n is None else config.n, config.seed)


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
            f"Retry them with: --resume {folder.path} --retry-failed"
        )


def _close_record(
    plan: RunPlan, conduct: Conduct, folder: RunFolder, outcome: RunOutcome, display_name: DisplayName
) -> None:
    """Write the record of a complete run; compare a replay with the recorded summary.

    A replay that is recorded again keeps the old calls beside the current summary.
    """
    sha256 = hashlib.sha256((folder.path / SUMMARY).read_bytes()).hexdigest()
    recorder, player = conduct.recorder, conduct.player
    notes = []
    if recorder is not None and player is not None:
        about = run_config(plan.config, plan.loaded, player.run.get("endpoints", {}), plan.sample)
        files = {name: about[name] for name in RECORDED_FILES}
        recorder.sign(player, {**player.run, **files, **recorded_table(plan.config, conduct)}, outcome.rows, sha256)
        notes.append(f"Record: {recorder.path}")
    elif recorder is not None:
        recorder.finish(sha256)
        notes.append(f"Record: {recorder.path}")
    elif player is not None and sha256 != player.summary_sha256:
        raise OtherBytesError(
            f"The replay's {SUMMARY} differs from the recorded one: the code that computes it has changed since "
            f"{player.path.name} was made, or that file was altered; compare the two, then keep the new one with "
            "--replay ... --record FILE."
        )
    elif player is not None:
        notes.append(f"Replayed without a call: {SUMMARY} equals the recorded one, byte for byte.")
        notes += [] if conduct.strict else _changes(plan, player)
    if display_name not in ("json", "none"):
        for sentence in notes:
            say(sentence)


def _changes(plan: RunPlan, player: Player) -> list[str]:
    """One line if prompts or deficits have changed since the record was made; nothing if they are the same."""
    changed = changed_files(player.run, plan.config.settings)
    if not changed:
        return []
    more = f"; and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
    return [f"{player.path.name} has other prompts than today's: {'; '.join(changed[:_LISTED])}{more}."]
