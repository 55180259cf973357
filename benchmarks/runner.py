"""Run methods on a data set and write a run folder: `python -m benchmarks.runner --help`."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from meta_agent_rag.cli.shared.command import complain, reporting
from meta_agent_rag.errors import InputError, UnknownNameError
from meta_agent_rag.llm.stages import runs_here
from meta_agent_rag.settings import Settings

from .methods import named
from .option_groups import grouped
from .recording import Player, Recorder
from .run.benchmarking import RunPlan, benchmark, planned, replayed, resumed, say_results, with_corpus
from .run.config import MODES, Conduct, Mode, RunConfig
from .run.display import display
from .run.estimate import estimated
from .run.folder import RunFolder
from .run.options import ConductOptions, OutputOptions, QuestionOptions, RecordOptions, RowOptions
from .run.protocols import protocol_named
from .run.provenance import experiment
from .run.serving import one_model
from .spreading.node import ShardContext, on_node
from .spreading.spread import ShardEngine, engine_named, spread

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
_EXAMPLES = (
    "--dataset sample --mode open_domain --n 5",
    "--dataset hotpotqa --n 100 --method metarag,standard_rag --cost-limit 2",
    "--method metarag --sweep MAX_METACOGNITIVE_ROUNDS=0,1,2",
    "--replay run.jsonl.gz",
)


@app.command(epilog="  |  ".join(f"marag bench runner {words}" for words in _EXAMPLES))
@reporting
@grouped
def main(
    context: typer.Context,
    questions: QuestionOptions,
    rows: RowOptions,
    run: ConductOptions,
    records: RecordOptions,
    output: OutputOptions,
) -> None:
    """Answer questions of a data set with one or more methods, score the answers, and write a report.

    Without a key, an embedded model with 135M parameters answers: everything works, but the answers are poor.

    Each run writes a folder in `--output-dir`: report.md to read, summary.json and tables/ for programs, one row per
    answer in samples.jsonl. An interrupted run can be continued with `--resume`.
    """
    given = {name for name in context.params if (by := context.get_parameter_source(name)) and by.name != "DEFAULT"}
    shard = context.obj if isinstance(context.obj, ShardContext) else None
    config = _config(questions, rows, run, output, shard)
    if questions.protocol is not None:
        config = _by_protocol(config, questions.protocol, given)
    _check_together(given)
    engine = None if run.engine is None else engine_named(run.engine)
    conduct = Conduct(
        retry_failed=run.retry_failed,
        fail_on_error=run.fail_on_error,
        recorder=None if records.record is None else Recorder(path=_record_path(records.record)),
        player=None if records.replay is None else Player.read(records.replay, strict=records.strict),
        strict=records.strict,
        plots=output.plots,
    )
    folder, plan = _plan(config, conduct, run.resume, output.output_dir, given)
    if questions.protocol is not None:
        _require_whole_sample(plan, questions.protocol)
    if run.dry_run:
        estimated(plan, output.output_dir, probe=run.probe, display_name=output.display_)
        return
    if engine is not None:
        _spread(context, engine, plan, run.shards, output)
        return
    with nullcontext() if shard is None else shard.watched():
        benchmark(plan, conduct, folder, output.output_dir, output.display_)


def _spread(
    context: typer.Context, engine: ShardEngine, plan: RunPlan, shards: int | None, output: OutputOptions
) -> None:
    if plan.config.mode == "open_domain" and plan.config.corpus is None:
        with_corpus(plan)  # once, not once a shard
    visible = output.display_ in ("rich", "plain")
    if visible:
        complain(f"Model: {plan.config.model_words}.")
    merged, summary = spread(
        context,
        engine,
        shards=shards,
        questions=len(plan.questions),
        settings=plan.config.settings,
        output_dir=output.output_dir,
        plots=output.plots,
        figures=display("none", free=runs_here(plan.config.settings)) if visible else None,
    )
    say_results(plan, merged, summary, output.display_)


def _config(
    questions: QuestionOptions,
    rows: RowOptions,
    run: ConductOptions,
    output: OutputOptions,
    shard: ShardContext | None,
) -> RunConfig:
    threshold = output.convergence_threshold
    assignments = [
        *(output.set_ or ()),
        *([] if threshold is None else [f"CONVERGENCE_THRESHOLD={threshold}"]),
        *([] if run.cost_limit is None else [f"COST_LIMIT_USD={run.cost_limit}"]),
        *([] if run.cache else ["RESPONSE_CACHE=false"]),
    ]
    settings = Settings.load(assignments)
    if shard is not None:
        settings = on_node(shard.settings, settings)
    return RunConfig(
        dataset=questions.dataset,
        mode=_mode(questions.mode),
        methods=tuple(chosen.name for chosen in named(rows.method, settings.methods_dir)),
        n=questions.n,
        limit=questions.limit,
        sample_ids=tuple(questions.sample_id or ()),
        shard=questions.shard,
        seed=questions.seed,
        data_file=questions.data_file,
        revision=questions.revision,
        aliases_file=questions.aliases,
        corpus=questions.corpus,
        concurrency=run.concurrency,
        settings=settings,
        sweeps=tuple(rows.sweep or ()),
        ablations=tuple(rows.without_deficit or ()),
        oracles=() if rows.oracle is None else tuple(name.strip() for name in rows.oracle.split(",")),
        equals=() if rows.equal is None else tuple(name.strip() for name in rows.equal.split(",")),
        repeats=rows.repeat,
        judge=rows.judge,
    )


def _plan(
    config: RunConfig, conduct: Conduct, resume: str | None, output_dir: Path, given: set[str]
) -> tuple[RunFolder | None, RunPlan]:
    if conduct.player is not None:
        _require_as_begun(config, conduct.player.run["experiment"], given)
        return None, replayed(config, conduct.player, strict=conduct.strict)
    if resume is None:
        return None, planned(replace(config, settings=one_model(config.settings)))
    folder = RunFolder.resume(resume, output_dir)
    _require_as_begun(config, folder.config()["experiment"], given)
    return folder, planned(resumed(config, folder))


def _require_whole_sample(plan: RunPlan, protocol: str) -> None:
    """A protocol's name states a number of questions: fewer questions are a different experiment."""
    if plan.config.n is not None and plan.sample["questions"] < plan.config.n:
        raise InputError(
            f"--protocol {protocol} draws {plan.config.n} questions, but the data set has {plan.sample['questions']}; "
            "use --dataset, --mode and --n instead."
        )


def _mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UnknownNameError("mode", name, list(MODES))


_OF_THE_EXPERIMENT = {
    **{name: name for name in ("dataset", "mode", "n", "limit", "shard", "seed", "revision", "corpus", "judge")},
    "sample_id": "sample_ids",
    "method": "methods",
    "sweep": "sweeps",
    "without_deficit": "ablations",
    "oracle": "oracles",
    "equal": "equals",
    "repeat": "repeats",
}
"""Flags, and their names in a run's `config.json`."""
_EXCLUDE: dict[str, tuple[str, ...]] = {
    "replay": (
        "resume",
        "dry_run",
        "protocol",
        "set_",
        "cost_limit",
        "convergence_threshold",
        "data_file",
        "aliases",
        "revision",
    ),
    "data_file": ("revision",),
    "resume": ("record", "dry_run", "protocol"),
    "dry_run": ("record",),
    "engine": ("shard", "resume", "record", "replay", "dry_run"),
}
_NEEDS = {"retry_failed": "resume", "probe": "dry_run", "strict": "replay", "shards": "engine"}


def _require_as_begun(config: RunConfig, was: Mapping[str, Any], given: set[str]) -> None:
    """Refuse a flag that contradicts the resumed run: it could only be ignored."""
    asked = experiment(config)
    for flag, name in _OF_THE_EXPERIMENT.items():
        if flag in given and asked[name] != was.get(name):
            begun = "was made without it" if was.get(name) is None else f"has {was[name]!r}"
            raise InputError(f"{_flag(flag)} is {asked[name]!r}, but that run {begun}; leave {_flag(flag)} out.")


def _check_together(given: set[str]) -> None:
    """Refuse flags that contradict each other: an ignored flag would mislead."""
    for flag, excluded in _EXCLUDE.items():
        clash = [name for name in excluded if flag in given and name in given]
        if clash:
            raise InputError(f"{_flag(flag)} and {_flag(clash[0])} are mutually exclusive; leave one of them out.")
    for flag, needed in _NEEDS.items():
        if flag in given and needed not in given:
            raise InputError(f"{_flag(flag)} requires {_flag(needed)}; add it, or leave {_flag(flag)} out.")


def _flag(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _record_path(path: Path) -> Path:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"--record {str(path)!r} must end in .jsonl or .jsonl.gz.")
    return path


def _by_protocol(config: RunConfig, name: str, given: set[str]) -> RunConfig:
    """What a named protocol pins, in place of the corresponding flags."""
    clash = [flag for flag in ("dataset", "mode", "n", "limit", "sample_id", "seed") if flag in given]
    if clash:
        raise InputError(f"--protocol {name} already defines the questions; leave {_flag(clash[0])} out.")
    pinned = protocol_named(name)
    if pinned.aliases != (config.aliases_file is not None):
        wanted = "accepts aliases of answers; give the file with" if pinned.aliases else "accepts no aliases; leave out"
        raise InputError(f"--protocol {name} {wanted} --aliases.")
    return replace(
        config,
        dataset=pinned.dataset,
        mode=_mode(pinned.mode),
        n=None if pinned.limit else pinned.n,
        limit=pinned.limit,
        seed=pinned.seed,
    )


if __name__ == "__main__":
    app()
