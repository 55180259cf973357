"""The options of `python -m benchmarks.runner`: one dataclass per panel of its help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .benchmarking import DEFAULT_N
from .display import DisplayName

_WHAT, _ROWS, _RUN, _RECORD, _LOOK = (
    "Questions",
    "Rows of the table",
    "The run",
    "Record and replay",
    "Settings and output",
)


def _option(panel: str, *names: str, metavar: str | None = None, help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)
    return option


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """Which questions are run, and over which evidence."""

    dataset: Annotated[
        str,
        _option(
            _WHAT,
            help="sample, or another that docs/benchmarks-reference.md lists; an unknown name lists them.",
        ),
    ] = "sample"
    mode: Annotated[
        str,
        _option(
            _WHAT,
            help="gold: the context supplied with each question; supporting: only its supporting paragraphs; "
            "open_domain: retrieval over the pooled paragraphs of the data file.",
        ),
    ] = "gold"
    n: Annotated[int | None, _option(_WHAT, "--n", help=f"Questions to draw (default {DEFAULT_N}).")] = None
    limit: Annotated[str | None, _option(_WHAT, metavar="A-B", help="Take rows by position instead of drawing.")] = None
    sample_id: Annotated[
        list[str] | None, _option(_WHAT, metavar="ID", help="Take this question instead of drawing; repeatable.")
    ] = None
    shard: Annotated[
        str | None,
        _option(
            _WHAT,
            metavar="I/N",
            help="Take the I-th of N parts of these questions; benchmarks.merge combines the runs.",
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draw and of the confidence intervals.", rich_help_panel=_WHAT)
    ] = 42
    protocol: Annotated[
        str | None,
        _option(_WHAT, metavar="NAME", help="Take data set, mode, questions and seed from run/protocols.yaml."),
    ] = None
    data_file: Annotated[
        Path | None, _option(_WHAT, metavar="FILE", help="Read this official JSON or JSONL file instead of the hub.")
    ] = None
    revision: Annotated[
        str | None, _option(_WHAT, metavar="REV", help="Commit, tag or branch of the data set on the hub.")
    ] = None
    aliases: Annotated[Path | None, _option(_WHAT, metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None
    corpus: Annotated[str | None, _option(_WHAT, metavar="NAME", help="An ingested corpus for open_domain.")] = None


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """The rows of the table: methods, and what is varied about them."""

    method: Annotated[str, _option(_ROWS, help="Methods, separated by commas, or `all`: see docs/benchmarks.md.")] = (
        "metarag"
    )
    sweep: Annotated[
        list[str] | None,
        _option(_ROWS, metavar="SETTING=V1,V2", help="One row per value; several sweeps give all combinations."),
    ] = None
    without_deficit: Annotated[
        list[str] | None,
        _option(
            _ROWS, metavar="NAME", help="Add a row without this deficit (several at once: A,B) beside the full method."
        ),
    ] = None
    oracle: Annotated[
        str | None,
        _option(
            _ROWS,
            metavar="STAGES",
            help="monitor, diagnosis, retrieval, plan, facts, separated by commas: add a row with each stage replaced "
            "by the data set's gold information.",
        ),
    ] = None
    equal: Annotated[
        str | None,
        _option(
            _ROWS,
            metavar="KINDS",
            help="dollars, tokens, separated by commas: add a row of self_consistency that samples chains until it has "
            "spent what the loop spent on the same question.",
        ),
    ] = None
    repeat: Annotated[int, _option(_ROWS, metavar="K", help="Run everything K times to measure the spread.")] = 1
    judge: Annotated[bool, _option(_ROWS, "--judge", help="Have a model judge the answers as well.")] = False


@dataclass(frozen=True, kw_only=True)
class ConductOptions:
    """How the run is carried out."""

    resume: Annotated[
        str | None, _option(_RUN, metavar="RUN", help="Continue an interrupted run, with its own data and methods.")
    ] = None
    retry_failed: Annotated[
        bool, _option(_RUN, "--retry-failed", help="With --resume: retry failures, also of single calls.")
    ] = False
    fail_on_error: Annotated[
        bool, _option(_RUN, "--fail-on-error", help="Stop at the first failed answer; --resume continues.")
    ] = False
    cost_limit: Annotated[
        float | None, _option(_RUN, metavar="USD", help="Stop before the run costs more than this; --resume continues.")
    ] = None
    dry_run: Annotated[
        bool, _option(_RUN, "--dry-run", help="Estimate the run from an earlier one, without any call.")
    ] = False
    probe: Annotated[
        int | None, _option(_RUN, metavar="K", help="With --dry-run: base the estimate on K questions run first.")
    ] = None
    concurrency: Annotated[
        int | None, _option(_RUN, help="Questions in parallel (default 8, or 2 with the embedded model).")
    ] = None
    engine: Annotated[
        str | None, _option(_RUN, metavar="NAME", help="Distribute the run over the machines of a cluster: ray.")
    ] = None
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --engine: divide the run into N parts (default: one per processor).",
            rich_help_panel=_RUN,
        ),
    ] = None
    cache: Annotated[
        bool, _option(_RUN, "--cache/--no-cache", help="Answer repeated calls from the response cache.")
    ] = True


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """What is recorded or replayed."""

    record: Annotated[
        Path | None,
        _option(_RECORD, metavar="FILE", help="Record answers, calls, searches and vectors in FILE (.jsonl[.gz])."),
    ] = None
    replay: Annotated[
        Path | None,
        _option(_RECORD, metavar="FILE", help="Rescore a recorded run, without a key, a model or any calls."),
    ] = None
    strict: Annotated[
        bool,
        _option(_RECORD, "--strict", help="With --replay: rebuild every prompt; each must match the recorded one."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Settings, and where and how results are shown."""

    convergence_threshold: Annotated[
        float | None, _option(_LOOK, help="Jaccard similarity at which the loop counts as converged.")
    ] = None
    output_dir: Annotated[Path, _option(_LOOK, metavar="DIR", help="Where run folders are written.")] = Path("RESULTS")
    display_: Annotated[DisplayName, _option(_LOOK, "--display", help="How progress is shown.")] = "rich"
    plots: Annotated[bool, _option(_LOOK, "--plots/--no-plots", help="Draw the report's plots.")] = True
    set_: Annotated[
        list[str] | None,
        _option(_LOOK, "--set", metavar="NAME=VALUE", help="Any setting; `marag config show` lists them."),
    ] = None
    debug: Annotated[bool, _option(_LOOK, "--debug", help="Show the traceback of an error.")] = False
