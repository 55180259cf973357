"""Score predictions of other systems in our table: `python -m benchmarks.import --help`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.cli.shared.command import Debug, Json, complain, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, LoadedQuestions, Question, discover, load_questions
from meta_agent_rag.errors import DataFileError, InputError
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from .methods import Method, MethodTask
from .metrics import SCORES, score_answer
from .predictions import Imported, imported
from .report import write_report
from .rows.past_run import PastRun, past_run
from .rows.samples import asked
from .rows.summary import summarise
from .run.arms import Arm
from .run.config import RunConfig
from .run.folder import SUMMARY, RunFolder
from .run.plan import recorded_config
from .run.protocols import SCORER, Protocol
from .tables import with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_MODE: Final = "imported"
_THEIRS = "each system's own"


@app.command()
@reporting
def main(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Predictions, one file per system.")],
    dataset: Annotated[str, typer.Option(help="The data set that the predictions are for.")],
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The system's name, once per file; default: the file's name."),
    ] = None,
    beside: Annotated[
        str | None, typer.Option(metavar="RUN", help="One of our runs on the same data, for the same table.")
    ] = None,
    data_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The questions, instead of the hub's.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None,
    aliases: Annotated[Path | None, typer.Option(metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the confidence intervals.")] = 42,
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are read and written.")] = Path(
        "RESULTS"
    ),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score predictions of other systems with our scorer, intervals and paired tests, beside one of our runs.

    Supported are FlashRAG's, MOTHRAG's and HippoRAG's files, HotpotQA's official predictions, {id: answer}, and rows
    of {"id" or "question", "prediction"}. The table covers the questions that all rows have.
    """
    names = name or [file.name.partition(".")[0] for file in files]
    if len(names) != len(files):
        raise InputError(f"{len(files)} files have {len(names)} names; give --name once for each, in their order.")
    settings = Settings.load()
    loaded = load_questions(
        dataset,
        data_file=data_file,
        aliases_file=aliases,
        registry=discover(settings.datasets_dir),
        access=HubAccess(token=settings.hf_token, revision=revision),
    )
    systems = [imported(file, loaded.questions, name=called) for file, called in zip(files, names, strict=True)]
    ours = None if beside is None else past_run(beside, output_dir)
    if ours is not None:
        _require_same(ours, dataset, loaded)
    folder, summary = _written(dataset, loaded, systems, ours, seed=seed, output_dir=output_dir, plots=plots)
    if as_json:
        print_json({"run": str(folder.path), "summary": summary})
        return
    for system in systems:
        other = f", {system.unknown} for other questions left out" if system.unknown else ""
        say(f"{system.name}: {len(system.predictions)} predictions{other}")
    for row, figures in summary["methods"].items():
        scores = "  ".join(
            f"{one.upper()} {with_interval(figures[one], figures[f'{one}_ci95'])}" for one in ("em", "f1")
        )
        say(f"  {row}: {scores}")
    say(f"Over {summary['n']} questions. Run folder: {folder.path}")
    largest = max(systems, key=lambda system: len(system.predictions))
    if (left_out := len(largest.predictions) - summary["n"]) > 0:
        complain(
            f"Only {counted(summary['n'], 'question')} in all rows: {counted(left_out, 'answer')} of {largest.name} "
            "left out; import a file alone for its figures over all of its questions."
        )


def _require_same(ours: PastRun, dataset: str, loaded: LoadedQuestions) -> None:
    """Refuse a run on another data set, or on other questions under the same ids."""
    if ours.dataset != dataset:
        raise InputError(
            f"The run {ours.name!r} is on {ours.dataset!r}, not {dataset!r}; name a run on the data of the predictions."
        )
    texts = {question.id: question.text for question in loaded.questions}
    for row in (row for rows in ours.methods.values() for row in rows):
        if texts.get(row["id"], row["question"]) != row["question"]:
            raise InputError(
                f"The id {row['id']!r} names different questions in {ours.name!r} and in the data; "
                "give the file of that run with --data-file."
            )


def _written(
    dataset: str,
    loaded: LoadedQuestions,
    systems: Sequence[Imported],
    ours: PastRun | None,
    *,
    seed: int,
    output_dir: Path,
    plots: bool,
) -> tuple[RunFolder, dict[str, Any]]:
    """Write the run folder of a table of these systems, optionally beside one of our runs; returns it and its summary.

    Raises `InputError` if the rows share no question, or two have the same name.
    """
    arms = [
        *([] if ours is None else recorded_config(ours.config).arms),
        *(
            Arm(method=Method(name=one.name, citation="", about="imported", departures="", answer=_unanswered))
            for one in systems
        ),
    ]
    names = [arm.name for arm in arms]
    if len(set(names)) < len(names):
        raise InputError("Two rows of the table would have the same name; give each file its own with --name.")
    shared = set.intersection(*(set(system.predictions) for system in systems))
    for of in () if ours is None else ours.methods.values():
        shared &= {row["id"] for row in of}
    questions = [question for question in loaded.questions if question.id in shared]
    if not questions:
        raise InputError("No question was answered by all of these systems and runs; import them one at a time.")
    rows = [_row(question, system) for system in systems for question in questions]
    if ours is not None:
        rows = [*(dict(row) for of in ours.methods.values() for row in of if row["id"] in shared), *rows]
    about = {
        "experiment": {"dataset": dataset, "mode": _MODE, "methods": names, "n": len(questions), "seed": seed},
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {"name": _MODE, "base_url": None, "models": {}, "embedded_model": None},
        "deficits": [],
        "settings": {},
        "beside": None if ours is None else ours.name,
        "imported": [{"name": one.name, "file": one.file, "sha256": one.sha256} for one in systems],
    }
    folder = RunFolder.create(output_dir, at=datetime.now(UTC), dataset=dataset, mode=_MODE, config=about)
    for row in rows:
        folder.add(row)
    folder.close()
    summary = summarise(
        rows,
        dataset=dataset,
        mode=_MODE,
        methods=names,
        n=len(questions),
        seed=seed,
        deficits=() if ours is None else sorted(ours.config["deficits"]),
        arms=arms,
    )
    folder.write_json(SUMMARY, summary)
    config = RunConfig(
        dataset=dataset,
        mode=_MODE,
        seed=seed,
        settings=Settings.load(llm_base_url="http://127.0.0.1", flash_model=_THEIRS),  # our models answered none
        methods=tuple(names),
        model_words=_THEIRS,
        recorded_arms=tuple(arms),
    )
    protocol = Protocol(
        dataset=dataset,
        evidence=_THEIRS,
        sample=f"{len(questions)} that all rows have",
        n=len(questions),
        scorer=SCORER,
        aliases=True if any(question.aliases for question in loaded.questions) else None,
        model=_THEIRS,
    )
    write_report(folder, config, summary, rows, arms=arms, ours=protocol, plots=plots)
    return folder, summary


def _row(question: Question, system: Imported) -> dict[str, Any]:
    """A row of `samples.jsonl`: what the file does not state is null, never a guess."""
    prediction = system.predictions[question.id]
    row = {
        **asked(question, system.name),
        "prediction": prediction.text,
        "rounds": [],
        "notes": [],
        "support": None,
        "joint": None,
        "latency_s": prediction.seconds or 0.0,
        "timed": prediction.seconds is not None,
        "llm_calls": prediction.calls,
        "cached_calls": 0,
        "tokens": {"prompt": prediction.prompt_tokens, "cache_hit": 0, "completion": prediction.completion_tokens},
        "cost_usd": None,
        "paid_usd": None,
    }
    if prediction.text is None:
        return {**row, **dict.fromkeys(SCORES), "error": f"ImportedError: {system.file} contains no answer"}
    score = score_answer(prediction.text, question.golds)
    answered = {"answer": prediction.text, "stop_reason": _MODE, "fired": False, "chosen": 0, "suspect": []}
    return {**row, **vars(score), **answered, "error": None}


async def _unanswered(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} was imported; it cannot be generated again.")


if __name__ == "__main__":
    app()
