"""Score another system's predictions as a run of ours: `python -m benchmarks.import --help`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, Question, discover, load_questions
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.settings import Settings

from .methods import Method, MethodTask
from .metrics import SCORES, score_answer
from .predictions import Imported, Prediction, imported
from .report import SCORER, write_report
from .rows.samples import asked
from .rows.summary import summarise
from .run.arms import Arm
from .run.config import RunConfig
from .run.folder import SUMMARY, RunFolder
from .tables import with_interval

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_MODE: Final = "imported"
_THEIRS = "the system's own"


@app.command()
@reporting
def main(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The predictions.")],
    dataset: Annotated[str, typer.Option(help="The data set that the predictions are for.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The system's name; default: the file's name.")
    ] = None,
    data_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The questions, instead of the hub's.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None,
    aliases: Annotated[Path | None, typer.Option(metavar="FILE", help="2WikiMultiHopQA's id_aliases.json.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the confidence intervals.")] = 42,
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders are written.")] = Path("RESULTS"),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw the report's plots.")] = True,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score predictions of another system with our scorer and intervals, as a run that `compare` takes.

    Supported are FlashRAG's, MOTHRAG's and HippoRAG's files, HotpotQA's official predictions, {id: answer}, and rows
    of {"id" or "question", "prediction"}.
    """
    settings = Settings.load()
    access = HubAccess(token=settings.hf_token, revision=revision)
    registry = discover(settings.datasets_dir)
    loaded = load_questions(dataset, data_file=data_file, aliases_file=aliases, registry=registry, access=access)
    system = imported(file, loaded.questions, name=name or file.name.partition(".")[0])
    questions = [question for question in loaded.questions if question.id in system.predictions]
    about: dict[str, Any] = {
        "experiment": {
            "dataset": dataset,
            "mode": _MODE,
            "methods": [system.name],
            "n": len(questions),
            "seed": seed,
            "revision": revision,
        },
        "revision": loaded.revision,
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {"name": _MODE, "base_url": None, "models": {}, "embedded_model": None},
        "deficits": [],
        "settings": {},
        "imported": {"name": system.name, "file": file.name, "sha256": system.sha256},
    }
    folder = RunFolder.create(output_dir, at=datetime.now(UTC), dataset=dataset, mode=_MODE, config=about)
    summary = _scored(folder, system, questions, dataset, seed=seed, plots=plots)
    if as_json:
        print_json({"run": str(folder.path), "summary": summary})
        return
    other = f", {system.unknown} for other questions left out" if system.unknown else ""
    figures = summary["methods"][system.name]
    scores = "  ".join(f"{one.upper()} {with_interval(figures[one], figures[f'{one}_ci95'])}" for one in ("em", "f1"))
    say(f"{system.name}: {len(system.predictions)} predictions{other}; {scores}")
    say(f"Run folder: {folder.path}")


def _scored(
    folder: RunFolder, system: Imported, questions: list[Question], dataset: str, *, seed: int, plots: bool
) -> dict[str, Any]:
    """Write the scored rows, the summary and the report; returns the summary."""
    rows = [_row(question, system.predictions[question.id], system) for question in questions]
    for row in rows:
        folder.add(row)
    folder.close()
    method = Method(name=system.name, citation="", about="imported", departures="", answer=_unanswered)
    arms, names, n = (Arm(method=method),), (system.name,), len(questions)
    summary = summarise(rows, dataset=dataset, mode=_MODE, methods=names, n=n, seed=seed, deficits=(), arms=arms)
    folder.write_json(SUMMARY, summary)
    none_asked = Settings.load(llm_base_url="http://127.0.0.1", flash_model=_THEIRS)
    config = RunConfig(dataset=dataset, mode=_MODE, seed=seed, settings=none_asked, methods=names, model_words=_THEIRS)
    protocol = {"data set": dataset, "questions": str(n), "scorer": SCORER, "evidence and model": _THEIRS}
    write_report(folder, config, summary, rows, arms=arms, protocol=protocol, plots=plots)
    return summary


def _row(question: Question, prediction: Prediction, system: Imported) -> dict[str, Any]:
    """A row of `samples.jsonl`: what the file does not state is null, never a guess."""
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
