"""Run methods on a data set and write a run folder: `python -m benchmarks.runner --help`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Debug, reporting
from meta_agent_rag.errors import InputError, UnknownNameError

from .run import DEFAULT_FAILURE_SHARE, DEFAULT_N
from .run.display import DisplayName

if TYPE_CHECKING:
    from .run.config import RunConfig

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
_EXAMPLES = (
    "--dataset sample --mode open_domain --n 5",
    "--dataset hotpotqa --n 100 --method metarag,standard_rag --cost-limit 2",
    "--method metarag --sweep MAX_METACOGNITIVE_ROUNDS=0,1,2",
    "--replay run.jsonl.gz",
)
_WHAT, _ROWS, _RUN, _RECORD, _LOOK = (
    "Questions",
    "Rows of the table",
    "The run",
    "Record and replay",
    "Settings and output",
)


def _option(panel: str, *names: str, metavar: str | None = None, help: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


@app.command(epilog="  |  ".join(f"marag bench runner {words}" for words in _EXAMPLES))
@reporting
def main(
    context: typer.Context,
    dataset: Annotated[
        str,
        _option(_WHAT, help="sample, or another that docs/benchmarks-reference.md lists; an unknown name lists them."),
    ] = "sample",
    mode: Annotated[
        str,
        _option(
            _WHAT,
            help="gold: the context supplied with each question; supporting: only its supporting paragraphs; "
            "open_domain: retrieval over the pooled paragraphs of the data file.",
        ),
    ] = "gold",
    n: Annotated[int | None, _option(_WHAT, "--n", help=f"Questions to draw (default {DEFAULT_N}).")] = None,
    limit: Annotated[
        str | None, _option(_WHAT, metavar="A-B", help="Take rows by position instead of drawing.")
    ] = None,
    sample_id: Annotated[
        list[str] | None, _option(_WHAT, metavar="ID", help="Take this question instead of drawing; repeatable.")
    ] = None,
    shard: Annotated[
        str | None,
        _option(
            _WHAT,
            metavar="I/N",
            help="Take the I-th of N parts of these questions; benchmarks.merge combines the runs.",
        ),
    ] = None,
    seed: Annotated[int, _option(_WHAT, help="Seed of the draw and of the confidence intervals.", min=0)] = 42,
    data_file: Annotated[
        Path | None, _option(_WHAT, metavar="FILE", help="Read this official JSON or JSONL file instead of the hub.")
    ] = None,
    revision: Annotated[
        str | None, _option(_WHAT, metavar="REV", help="Commit, tag or branch of the data set on the hub.")
    ] = None,
    aliases: Annotated[Path | None, _option(_WHAT, metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None,
    corpus: Annotated[str | None, _option(_WHAT, metavar="NAME", help="An ingested corpus for open_domain.")] = None,
    method: Annotated[str, _option(_ROWS, help="Methods, separated by commas, or `all`: see docs/benchmarks.md.")] = (
        "metarag"
    ),
    sweep: Annotated[
        list[str] | None,
        _option(_ROWS, metavar="SETTING=V1,V2", help="One row per value; several sweeps give all combinations."),
    ] = None,
    without_deficit: Annotated[
        list[str] | None,
        _option(
            _ROWS, metavar="NAME", help="Add a row without this deficit (several at once: A,B) beside the full method."
        ),
    ] = None,
    oracle: Annotated[
        str | None,
        _option(
            _ROWS,
            metavar="STAGES",
            help="monitor, diagnosis, retrieval, separated by commas: add a row with each stage replaced "
            "by the data set's gold information.",
        ),
    ] = None,
    equal: Annotated[
        str | None,
        _option(
            _ROWS,
            metavar="tokens",
            help="Add a row of self_consistency that samples chains until it has spent as many tokens as the loop on "
            "the same question.",
        ),
    ] = None,
    judge: Annotated[bool, _option(_ROWS, "--judge", help="Have a model judge the answers as well.")] = False,
    scorer: Annotated[
        str,
        _option(_ROWS, help="official, or multilingual: with characters as words where a script puts no blanks."),
    ] = "official",
    resume: Annotated[
        str | None, _option(_RUN, metavar="RUN", help="Continue a run with its own data, methods, settings and limit.")
    ] = None,
    retry_failed: Annotated[
        bool, _option(_RUN, "--retry-failed", help="With --resume: retry failures, also of single calls.")
    ] = False,
    rescore: Annotated[
        str | None,
        _option(_RUN, metavar="RUN", help="Score a run again, by --scorer or --judge, without answering again."),
    ] = None,
    fail_on_error: Annotated[
        float,
        _option(
            _RUN,
            metavar="SHARE",
            help="Stop once more than this share of a row's answers failed; 0 stops at the first, 1 never.",
            min=0.0,
            max=1.0,
        ),
    ] = DEFAULT_FAILURE_SHARE,
    cost_limit: Annotated[
        float | None, _option(_RUN, metavar="USD", help="Stop before the run costs more than this; --resume continues.")
    ] = None,
    dry_run: Annotated[
        bool, _option(_RUN, "--dry-run", help="Estimate the run from an earlier one, without any call.")
    ] = False,
    concurrency: Annotated[
        int | None, _option(_RUN, help="Questions in parallel (default 8, or 2 with the embedded model).")
    ] = None,
    engine: Annotated[
        str | None, _option(_RUN, metavar="NAME", help="Distribute the run over the machines of a cluster: ray.")
    ] = None,
    shards: Annotated[
        int | None,
        _option(
            _RUN, metavar="N", help="With --engine: divide the run into N parts (default: one per processor).", min=1
        ),
    ] = None,
    record: Annotated[
        Path | None,
        _option(_RECORD, metavar="FILE", help="Record answers and calls in FILE (.jsonl[.gz])."),
    ] = None,
    replay: Annotated[
        Path | None,
        _option(_RECORD, metavar="FILE", help="Rescore a recorded run, without a key, a model or any calls."),
    ] = None,
    output_dir: Annotated[Path, _option(_LOOK, metavar="DIR", help="Where run folders are written.")] = Path("RESULTS"),
    display_: Annotated[DisplayName, _option(_LOOK, "--display", help="How progress is shown.")] = "rich",
    plots: Annotated[bool, _option(_LOOK, "--plots/--no-plots", help="Draw the report's plots.")] = True,
    set_: Annotated[
        list[str] | None,
        _option(_LOOK, "--set", metavar="NAME=VALUE", help="Any setting; `marag config show` lists them."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Answer questions of a data set with one or more methods, score the answers, and write a report.

    Without a key, an embedded model with 135M parameters answers: everything works, but the answers are poor.

    Each run writes a folder in `--output-dir`: report.md to read, summary.json and tables/ for programs, one row per
    answer in samples.jsonl. An interrupted run can be continued with `--resume`.
    """
    given = {name for name in context.params if (by := context.get_parameter_source(name)) and by.name != "DEFAULT"}
    _check_together(given)
    # imported here, so that --help is quick
    from meta_agent_rag import discovery
    from meta_agent_rag.settings import Settings

    from .methods import named
    from .recording import Recorder, Recording
    from .run.benchmarking import benchmark, require_answers, say_results
    from .run.benchmarking import rescore as rescored
    from .run.config import MODES, RunConfig, RunOptions
    from .run.estimate import estimated
    from .run.folder import RunFolder
    from .run.on_ray import spread
    from .run.plan import planned, replayed, resumed
    from .run.provenance import one_model

    assignments = [*(set_ or ()), *([] if cost_limit is None else [f"COST_LIMIT_USD={cost_limit}"])]
    settings = Settings.load(assignments)
    config = RunConfig(
        dataset=dataset,
        mode=discovery.named("mode", mode, {one: one for one in MODES}),
        methods=tuple(chosen.name for chosen in named(method, settings.methods_dir)),
        n=n,
        limit=limit,
        sample_ids=tuple(sample_id or ()),
        shard=shard,
        seed=seed,
        data_file=data_file,
        revision=revision,
        aliases_file=aliases,
        corpus=corpus,
        concurrency=concurrency,
        settings=settings,
        sweeps=tuple(sweep or ()),
        ablations=tuple(without_deficit or ()),
        oracles=tuple(name.strip() for name in (oracle or "").split(",") if name.strip()),
        equals=() if equal is None else (equal,),
        judge=judge,
        scorer=scorer,
    )
    own_settings = frozenset(assignment.partition("=")[0].strip().lower() for assignment in assignments)
    if rescore is not None:
        earlier = RunFolder.named(rescore, output_dir)
        _require_as_begun(config, earlier.config()["experiment"], given - {"judge", "scorer"})
        chosen = scorer if "scorer" in given else None
        rescored(
            config, earlier, own_settings, scorer=chosen, output_dir=output_dir, plots=plots, display_name=display_
        )
        return
    if engine not in (None, "ray"):
        raise UnknownNameError("engine", str(engine), ["ray"])
    if record is not None and not record.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"--record {str(record)!r} must end in .jsonl or .jsonl.gz.")
    options = RunOptions(
        retry_failed=retry_failed,
        fail_on_error=fail_on_error,
        recorder=None if record is None else Recorder(path=record),
        recording=None if replay is None else Recording.read(replay),
        plots=plots,
    )
    folder = None
    if options.recording is not None:
        _require_as_begun(config, options.recording.run["experiment"], given)
        plan = replayed(config, options.recording)
    elif resume is not None:
        folder = RunFolder.named(resume, output_dir)
        _require_as_begun(config, folder.config()["experiment"], given)
        plan = planned(resumed(config, folder, own_settings))
    else:
        plan = planned(replace(config, settings=one_model(settings)))
    if dry_run:
        estimated(plan, output_dir, display_name=display_)
    elif engine is not None:
        visible = display_ in ("rich", "plain")
        merged, summary = spread(plan, options, shards=shards, output_dir=output_dir, say=visible)
        say_results(plan.config, merged, summary, display_)
        require_answers(summary, [row for row in merged.rows().values() if row["error"] is not None])
    else:
        benchmark(plan, options, folder, output_dir, display_)


_OF_THE_EXPERIMENT = {
    **{name: name for name in ("dataset", "mode", "n", "limit", "shard", "seed", "revision", "corpus", "judge")},
    "scorer": "scorer",
    "sample_id": "sample_ids",
    "method": "methods",
    "sweep": "sweeps",
    "without_deficit": "ablations",
    "oracle": "oracles",
    "equal": "equals",
}
"""Flags, and their names in a run's `config.json`."""
_EXCLUDE: dict[str, tuple[str, ...]] = {
    "replay": ("record", "resume", "dry_run", "set_", "cost_limit", "data_file", "aliases", "revision"),
    "data_file": ("revision",),
    "resume": ("dry_run",),
    "rescore": ("resume", "replay", "record", "dry_run", "engine"),
    "dry_run": ("record",),
    "engine": ("shard", "resume", "record", "replay", "dry_run"),
}
_NEEDS = {"retry_failed": "resume", "shards": "engine"}


def _check_together(given: set[str]) -> None:
    """Refuse flags that contradict each other: an ignored flag would mislead."""

    for flag, excluded in _EXCLUDE.items():
        clash = [name for name in excluded if flag in given and name in given]
        if clash:
            raise InputError(f"{_flag(flag)} and {_flag(clash[0])} are mutually exclusive; leave one of them out.")
    for flag, needed in _NEEDS.items():
        if flag in given and needed not in given:
            raise InputError(f"{_flag(flag)} requires {_flag(needed)}; add it, or leave {_flag(flag)} out.")


def _require_as_begun(config: "RunConfig", was: Mapping[str, Any], given: set[str]) -> None:
    """Refuse a flag that contradicts the resumed run, since it could only be ignored, and a run of another system."""

    if was["mode"] == "imported":
        raise InputError("The answers of that run were imported; import the file again to score it again.")
    asked = config.experiment
    for flag, name in _OF_THE_EXPERIMENT.items():
        if flag in given and asked[name] != was.get(name):
            begun = "was made without it" if was.get(name) is None else f"has {was[name]!r}"
            raise InputError(f"{_flag(flag)} is {asked[name]!r}, but that run {begun}; leave {_flag(flag)} out.")


def _flag(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


if __name__ == "__main__":
    app()
