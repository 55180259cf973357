"""Runs methods over a data set and writes a run folder: `python -m benchmarks.runner --help`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from meta_agent_rag.cli.shared.command import reporting
from meta_agent_rag.errors import InputError, UnknownNameError
from meta_agent_rag.settings import Settings

from .methods import named
from .recording import Player, Recorder
from .run.benchmarking import DEFAULT_N, Plan, benchmark, planned, replayed, resumed
from .run.config import MODES, Conduct, Mode, RunConfig
from .run.estimate import estimated
from .run.folder import RunFolder
from .run.protocols import protocol_named
from .run.provenance import experiment

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
_WHAT, _ROWS, _RUN, _RECORD, _LOOK = (
    "Questions",
    "Rows of the table",
    "The run",
    "Record and replay",
    "Settings and output",
)
_EXAMPLES = (
    "--dataset sample --mode open_domain --n 5",
    "--dataset hotpotqa --n 100 --method metarag,standard_rag --cost-limit 2",
    "--method metarag --sweep MAX_METACOGNITIVE_ROUNDS=0,1,2",
    "--replay benchmarks/recorded/sample.jsonl.gz",
)


def _option(panel: str, *names: str, metavar: str | None = None, help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)
    return option


@app.command(epilog="  |  ".join(f"python -m benchmarks.runner {words}" for words in _EXAMPLES))
@reporting
def main(
    context: typer.Context,
    dataset: Annotated[str, _option(_WHAT, help="hotpotqa, 2wikimultihopqa, musique or sample.")] = "sample",
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
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draw and of the confidence intervals.", rich_help_panel=_WHAT)
    ] = 42,
    protocol: Annotated[
        str | None,
        _option(_WHAT, metavar="NAME", help="Take data set, mode, questions and seed from run/protocols.yaml."),
    ] = None,
    data_file: Annotated[
        Path | None, _option(_WHAT, metavar="FILE", help="Read this official JSON or JSONL file instead of the hub.")
    ] = None,
    aliases: Annotated[Path | None, _option(_WHAT, metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None,
    corpus: Annotated[str | None, _option(_WHAT, metavar="NAME", help="An ingested corpus for open_domain.")] = None,
    method: Annotated[
        str, _option(_ROWS, help="Methods, separated by commas, or `all`: see docs/benchmarks.md.")
    ] = "metarag",
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
            help="monitor, diagnosis, retrieval, separated by commas: add a row with each stage replaced by what the "
            "data set knows.",
        ),
    ] = None,
    repeat: Annotated[int, _option(_ROWS, metavar="K", help="Run everything K times to measure the spread.")] = 1,
    judge: Annotated[bool, _option(_ROWS, "--judge", help="Have a model judge the answers as well.")] = False,
    resume: Annotated[
        str | None, _option(_RUN, metavar="RUN", help="Continue an interrupted run, with its own data and methods.")
    ] = None,
    retry_failed: Annotated[
        bool, _option(_RUN, "--retry-failed", help="With --resume: ask failed questions again.")
    ] = False,
    fail_on_error: Annotated[
        bool, _option(_RUN, "--fail-on-error", help="Stop at the first failed answer; --resume continues.")
    ] = False,
    cost_limit: Annotated[
        float | None, _option(_RUN, metavar="USD", help="Stop before the run costs more than this; --resume continues.")
    ] = None,
    dry_run: Annotated[
        bool, _option(_RUN, "--dry-run", help="Estimate the run from an earlier one, without asking anything.")
    ] = False,
    probe: Annotated[
        int | None, _option(_RUN, metavar="K", help="With --dry-run: base the estimate on K questions asked first.")
    ] = None,
    concurrency: Annotated[
        int | None, _option(_RUN, help="Questions in parallel (default 8, or 2 with the embedded model).")
    ] = None,
    cache: Annotated[
        bool, _option(_RUN, "--cache/--no-cache", help="Answer repeated calls from the response cache.")
    ] = True,
    record: Annotated[
        Path | None,
        _option(
            _RECORD, metavar="FILE", help="Record every answer, call, search and vector in FILE (.jsonl or .jsonl.gz)."
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        _option(_RECORD, metavar="FILE", help="Score a recorded run again, without a key, a model or any calls."),
    ] = None,
    strict: Annotated[
        bool,
        _option(_RECORD, "--strict", help="With --replay: make every prompt again; each must be the recorded one."),
    ] = False,
    convergence_threshold: Annotated[
        float | None, _option(_LOOK, help="Jaccard similarity at which the loop has converged.")
    ] = None,
    output_dir: Annotated[Path, _option(_LOOK, metavar="DIR", help="Where run folders are written.")] = Path("RESULTS"),
    display_: Annotated[
        Literal["rich", "plain", "json", "none"], _option(_LOOK, "--display", help="How progress is shown.")
    ] = "rich",
    plots: Annotated[bool, _option(_LOOK, "--plots/--no-plots", help="Draw the report's plots.")] = True,
    set_: Annotated[
        list[str] | None,
        _option(_LOOK, "--set", metavar="NAME=VALUE", help="Any setting; `marag config show` lists them."),
    ] = None,
    debug: Annotated[bool, _option(_LOOK, "--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Answer questions of a data set by one or more methods, score them, and write a report.

    Without a key, an embedded model of 135M parameters answers: everything works, but the answers are poor.

    Each run writes a folder in `--output-dir`: report.md to read, summary.json and tables/ for programs, one row per
    answer in samples.jsonl. An interrupted run can be continued with `--resume`.
    """
    given = {name for name in context.params if (by := context.get_parameter_source(name)) and by.name != "DEFAULT"}
    assignments = [
        *(set_ or ()),
        *([] if convergence_threshold is None else [f"CONVERGENCE_THRESHOLD={convergence_threshold}"]),
        *([] if cost_limit is None else [f"COST_LIMIT_USD={cost_limit}"]),
        *([] if cache else ["RESPONSE_CACHE=false"]),
    ]
    config = RunConfig(
        dataset=dataset,
        mode=_mode(mode),
        methods=tuple(chosen.name for chosen in named(method)),
        n=n,
        limit=limit,
        sample_ids=tuple(sample_id or ()),
        seed=seed,
        data_file=data_file,
        aliases_file=aliases,
        corpus=corpus,
        concurrency=concurrency,
        settings=Settings.load(assignments),
        sweeps=tuple(sweep or ()),
        ablations=tuple(without_deficit or ()),
        oracles=() if oracle is None else tuple(name.strip() for name in oracle.split(",")),
        repeats=repeat,
        judge=judge,
    )
    if protocol is not None:
        config = _by_protocol(config, protocol, given)
    _check_together(given)
    conduct = Conduct(
        retry_failed=retry_failed,
        fail_on_error=fail_on_error,
        recorder=None if record is None else Recorder(path=_record_path(record)),
        player=None if replay is None else Player.read(replay, strict=strict),
        strict=strict,
        plots=plots,
    )
    folder, plan = _plan(config, conduct, resume, output_dir, given)
    if protocol is not None:
        _require_whole_sample(plan, protocol)
    if dry_run:
        estimated(plan, output_dir, probe=probe, display_name=display_)
        return
    benchmark(plan, conduct, folder, output_dir, display_)


def _plan(
    config: RunConfig, conduct: Conduct, resume: str | None, output_dir: Path, given: set[str]
) -> tuple[RunFolder | None, Plan]:
    if conduct.player is not None:
        _require_as_begun(config, conduct.player.run["experiment"], given)
        return None, replayed(config, conduct.player, strict=conduct.strict)
    if resume is None:
        return None, planned(config)
    folder = RunFolder.resume(resume, output_dir)
    _require_as_begun(config, folder.config()["experiment"], given)
    return folder, planned(resumed(config, folder))


def _require_whole_sample(plan: Plan, protocol: str) -> None:
    """A protocol's name tells a number of questions: fewer are another experiment."""
    if plan.config.n is not None and len(plan.questions) < plan.config.n:
        raise InputError(
            f"--protocol {protocol} draws {plan.config.n} questions, and the data hold {len(plan.questions)}; "
            "name what is asked by --dataset, --mode and --n instead."
        )


def _mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UnknownNameError("mode", name, list(MODES))


_OF_THE_EXPERIMENT = {
    **{name: name for name in ("dataset", "mode", "n", "limit", "seed", "corpus", "judge")},
    "sample_id": "sample_ids",
    "method": "methods",
    "sweep": "sweeps",
    "without_deficit": "ablations",
    "oracle": "oracles",
    "repeat": "repeats",
}
"""Flags, and what they are called in a run's `config.json`."""
_EXCLUDE: dict[str, tuple[str, ...]] = {
    "replay": ("resume", "dry_run", "protocol", "set_", "cost_limit", "convergence_threshold", "data_file", "aliases"),
    "resume": ("record", "dry_run", "protocol"),
    "dry_run": ("record",),
}
_NEEDS = {"retry_failed": "resume", "probe": "dry_run", "strict": "replay"}


def _require_as_begun(config: RunConfig, was: Mapping[str, Any], given: set[str]) -> None:
    """Refuse a flag that says otherwise than the run that is taken up: it could only be ignored."""
    asked = experiment(config)
    for flag, name in _OF_THE_EXPERIMENT.items():
        if flag in given and asked[name] != was.get(name):
            raise InputError(
                f"{_flag(flag)} says {asked[name]!r}, and that run has {was.get(name)!r}; leave {_flag(flag)} out."
            )


def _check_together(given: set[str]) -> None:
    """Refuse flags that contradict each other: one that is ignored would mislead."""
    for flag, excluded in _EXCLUDE.items():
        clash = [name for name in excluded if flag in given and name in given]
        if clash:
            raise InputError(f"{_flag(flag)} and {_flag(clash[0])} exclude each other; leave one of them out.")
    for flag, needed in _NEEDS.items():
        if flag in given and needed not in given:
            raise InputError(f"{_flag(flag)} goes with {_flag(needed)}; add it, or leave {_flag(flag)} out.")


def _flag(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _record_path(path: Path) -> Path:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise InputError(f"--record {str(path)!r} is to end in .jsonl or .jsonl.gz; name such a file.")
    return path


def _by_protocol(config: RunConfig, name: str, given: set[str]) -> RunConfig:
    """What a named protocol pins, in place of the flags for it."""
    clash = [flag for flag in ("dataset", "mode", "n", "limit", "sample_id", "seed") if flag in given]
    if clash:
        raise InputError(f"--protocol {name} says what is asked; leave {_flag(clash[0])} out.")
    pinned = protocol_named(name)
    if pinned.aliases != (config.aliases_file is not None):
        wanted = "counts aliases of answers; give the file with" if pinned.aliases else "counts no aliases; leave out"
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
