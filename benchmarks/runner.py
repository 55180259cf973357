"""Runs methods over a data set and writes a run folder: `python -m benchmarks.runner --help`."""

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.monitor import policy
from meta_agent_rag.cli.command import Assignments, Debug, complain, reporting, run, say
from meta_agent_rag.errors import InputError, MetaRagError, UnknownNameError
from meta_agent_rag.settings import Settings

from .config import MODES, Mode, RunConfig
from .datasets import LoadedQuestions, Question, by_position, draw, load_questions
from .display import DisplayName, Silent, display
from .methods import named
from .provenance import changed_settings, run_config
from .report import markdown, protocol, show
from .run import Outcome, execute
from .run_folder import REPORT, SUMMARY, RunFolder
from .samples import official_predictions
from .summary import summarise

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_DEFAULT_N = 50


@app.command()
@reporting
def main(
    dataset: Annotated[str, typer.Option(help="hotpotqa, 2wikimultihopqa, musique or sample.")] = "sample",
    mode: Annotated[
        str,
        typer.Option(
            help="gold: the context that comes with a question; supporting: only its supporting paragraphs; "
            "open_domain: retrieval over the pooled paragraphs of the data file."
        ),
    ] = "gold",
    n: Annotated[int | None, typer.Option("--n", help=f"Questions to draw (default {_DEFAULT_N}).")] = None,
    limit: Annotated[str | None, typer.Option(metavar="A-B", help="Rows by position instead of a draw.")] = None,
    method: Annotated[str, typer.Option(help="Methods, separated by commas, or `all`.")] = "metarag",
    data_file: Annotated[Path | None, typer.Option(help="The official JSON or JSONL instead of the hub.")] = None,
    aliases: Annotated[Path | None, typer.Option(help="2WikiMultiHopQA's id_aliases.json.")] = None,
    corpus: Annotated[str | None, typer.Option(help="An ingested corpus for open_domain.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw and of the intervals.")] = 42,
    concurrency: Annotated[
        int | None, typer.Option(help="Questions at once (default 8, with the embedded model 2).")
    ] = None,
    cost_limit: Annotated[float | None, typer.Option(help="Stop before the run costs more than this, in USD.")] = None,
    convergence_threshold: Annotated[
        float | None, typer.Option(help="Jaccard similarity at which the loop has converged.")
    ] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Use the response cache.")] = True,
    without_deficit: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave a deficit out, as the paper's ablations do.")
    ] = None,
    output_dir: Annotated[Path, typer.Option(help="Where run folders go.")] = Path("RESULTS"),
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Take up an interrupted run, with its own data and methods.")
    ] = None,
    display_: Annotated[
        Literal["rich", "plain", "json", "none"], typer.Option("--display", help="How the run shows itself.")
    ] = "rich",
    set_: Assignments = None,
    debug: Debug = False,
) -> None:
    """Answer questions of a data set by one or more methods, and score them.

    Results go to a run folder that survives interruption: resume it with --resume RUN.
    """
    assignments = list(set_ or ())
    if convergence_threshold is not None:
        assignments.append(f"CONVERGENCE_THRESHOLD={convergence_threshold}")
    if cost_limit is not None:
        assignments.append(f"COST_LIMIT_USD={cost_limit}")
    if not cache:
        assignments.append("RESPONSE_CACHE=false")
    config = RunConfig(
        dataset=dataset,
        mode=_mode(mode),
        methods=tuple(chosen.name for chosen in named(method)),
        n=n,
        limit=limit,
        seed=seed,
        data_file=data_file,
        aliases_file=aliases,
        corpus=corpus,
        without_deficits=tuple(without_deficit or ()),
        concurrency=concurrency,
        settings=Settings.load(assignments),
    )
    folder = None
    if resume is not None:
        folder = RunFolder.resume(resume, output_dir)
        config = resumed(config, folder)
    benchmark(config, folder, output_dir, display_)


def _mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UnknownNameError("mode", name, list(MODES))


def resumed(config: RunConfig, folder: RunFolder) -> RunConfig:
    """The configuration of an earlier run with today's limits; settings that shape answers must be the same."""
    before = folder.config()
    was = before["experiment"]
    changed = changed_settings(before["settings"], config.settings.model_dump(mode="json"))
    if changed:
        raise InputError(
            f"The run {folder.path.name!r} was started with other values of {', '.join(changed).upper()}; "
            "resume it with those, or start a new run."
        )
    return replace(
        config,
        dataset=was["dataset"],
        mode=was["mode"],
        methods=tuple(was["methods"]),
        n=was["n"],
        limit=was["limit"],
        seed=was["seed"],
        data_file=None if was["data_file"] is None else Path(was["data_file"]),
        aliases_file=None if was["aliases_file"] is None else Path(was["aliases_file"]),
        corpus=was["corpus"],
        without_deficits=tuple(was["without_deficits"]),
    )


def benchmark(config: RunConfig, folder: RunFolder | None, output_dir: Path, display_name: DisplayName) -> Path:
    """Run, or go on with, a benchmark; returns its folder. Raises what stopped it, once all is saved."""
    _check(config)
    loaded = load_questions(config.dataset, data_file=config.data_file, aliases_file=config.aliases_file)
    questions = _questions(config, loaded)
    described = run_config(config, loaded)
    if folder is None:
        now = datetime.now(UTC)
        folder = RunFolder.create(output_dir, at=now, dataset=config.dataset, mode=config.mode, config=described)
    else:
        folder.require_same(described)
    shown = display(display_name)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # ends as cleanly as Ctrl+C
    try:
        outcome = run(execute(config, loaded, questions, folder, shown))
    except KeyboardInterrupt:
        shown.stop()
        complain(f"Stopped. Go on with: --resume {folder.path}")
        raise typer.Exit(130) from None
    _conclude(config, loaded, questions, folder, outcome, shown, display_name)
    return folder.path


def _check(config: RunConfig) -> None:
    """Refuse what cannot work before anything is written."""
    policy(config.settings)
    deficits = discover_deficits(config.settings.deficits_dir)
    if config.without_deficits:
        deficits.without(config.without_deficits)
    if config.concurrency is not None and config.concurrency < 1:
        raise InputError(f"--concurrency {config.concurrency} answers nothing; give 1 or more.")
    if config.n is not None and config.limit is not None:
        raise InputError("--n and --limit exclude each other; give one of them.")
    if config.corpus is not None and config.mode != "open_domain":
        raise InputError(f"--corpus is for --mode open_domain, and the mode is {config.mode!r}.")


def _questions(config: RunConfig, loaded: LoadedQuestions) -> Sequence[Question]:
    if config.limit is not None:
        return by_position(loaded.questions, config.limit)
    return draw(loaded.questions, _DEFAULT_N if config.n is None else config.n, config.seed)


def _conclude(
    config: RunConfig,
    loaded: LoadedQuestions,
    questions: Sequence[Question],
    folder: RunFolder,
    outcome: Outcome,
    shown: Silent,
    display_name: DisplayName,
) -> None:
    """Write what there is, show it, and say what went wrong."""
    summary = summarise(
        outcome.rows,
        dataset=config.dataset,
        mode=config.mode,
        methods=config.methods,
        n=len(questions),
        seed=config.seed,
        deficits=outcome.deficits,
    )
    ours = protocol(config, n=len(questions), pooled=len(loaded.questions))
    folder.write_json(SUMMARY, summary)
    folder.write_text(REPORT, markdown(config, summary, outcome.rows, ours))
    for number, name in enumerate(config.methods):
        rows = [row for row in outcome.rows if row["method"] == name]
        folder.write_json("predictions.json" if number == 0 else f"predictions-{name}.json", official_predictions(rows))
    if display_name == "json":
        say(json.dumps({"run": str(folder.path), "summary": summary}, ensure_ascii=False))
    elif display_name != "none":
        show(config, summary, ours)
        say(f"Run folder: {folder.path}")
    _complain(config, questions, folder, outcome)


def _complain(config: RunConfig, questions: Sequence[Question], folder: RunFolder, outcome: Outcome) -> None:
    failed = [row for row in outcome.rows if row["error"] is not None]
    wanted = len(questions) * len(config.methods)
    if outcome.stopped_by is not None:
        answered = len(outcome.rows) - len(failed)
        complain(f"Stopped after {answered} of {wanted} answers. Go on with: --resume {folder.path}")
        raise outcome.stopped_by
    if failed and len(failed) == wanted:
        raise AllFailedError(f"Every question failed, the first with {failed[0]['error']}")
    if failed:
        complain(f"{len(failed)} of {wanted} answers failed; {folder.path / REPORT} lists them.")


class AllFailedError(MetaRagError):
    """No question of a run could be answered."""


if __name__ == "__main__":
    app()
