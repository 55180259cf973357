"""A run folder of imported predictions, beside one of our runs: scored, with intervals and paired tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from meta_agent_rag.agent.engine import Answer, Engine
from meta_agent_rag.datasets import LoadedQuestions, Question
from meta_agent_rag.errors import DataFileError, InputError
from meta_agent_rag.settings import Settings

from ..methods import Method, MethodTask
from ..metrics import score_answer
from ..report import write_report
from ..rows.past_run import PastRun
from ..rows.samples import asked
from ..rows.summary import summarise
from ..run.arms import Arm
from ..run.config import Mode, RunConfig
from ..run.folder import SUMMARY, RunFolder
from ..run.plan import recorded_config
from ..run.protocols import SCORER, Protocol
from .files import Imported

MODE: Mode = "imported"
_THEIRS = "each system's own"


@dataclass(frozen=True, kw_only=True)
class Table:
    """The contents of one table: the systems, optionally beside one of our runs, on the questions that all share."""

    dataset: str
    loaded: LoadedQuestions
    systems: Sequence[Imported]
    beside: PastRun | None
    seed: int

    def questions(self) -> list[Question]:
        """The questions that every system, and every row of our run, answered or failed.

        Raises `InputError` if there are none.
        """
        shared = set.intersection(*(set(system.predictions) for system in self.systems))
        if self.beside is not None:
            for name in self.beside.methods:
                shared &= {row["id"] for row in self.beside.rows(name)}
        found = [question for question in self.loaded.questions if question.id in shared]
        if not found:
            raise InputError("No question was answered by all of these systems and runs; import them one at a time.")
        return found

    def arms(self) -> list[Arm]:
        """The rows of the table, ours first; raises `InputError` for a name that occurs twice."""
        ours = [] if self.beside is None else list(recorded_config(self.beside.config).arms)
        arms = [*ours, *(Arm(method=_method(system)) for system in self.systems)]
        names = [arm.name for arm in arms]
        if len(set(names)) < len(names):
            raise InputError("Two rows of the table would have the same name; give each file its own with --name.")
        return arms


def write_table(table: Table, output_dir: Path, *, plots: bool) -> tuple[RunFolder, dict[str, Any]]:
    """Write the run folder of a table; returns it with its summary."""
    arms, questions = table.arms(), table.questions()
    names = [arm.name for arm in arms]
    folder = RunFolder.create(
        output_dir, at=datetime.now(UTC), dataset=table.dataset, mode=MODE, config=_config(table, names, len(questions))
    )
    rows = [dict(row) for row in _rows(table, questions)]
    for row in rows:
        folder.add(row)
    folder.close()
    summary = summarise(
        rows,
        dataset=table.dataset,
        mode=MODE,
        methods=names,
        n=len(questions),
        seed=table.seed,
        deficits=() if table.beside is None else sorted(table.beside.config["deficits"]),
        arms=arms,
    )
    folder.write_json(SUMMARY, summary)
    config = RunConfig(
        dataset=table.dataset,
        mode=MODE,
        seed=table.seed,
        settings=Settings.load(llm_base_url="http://127.0.0.1", flash_model=_THEIRS),  # our models answered none
        methods=tuple(names),
        model_words=_THEIRS,
        recorded_arms=tuple(arms),
    )
    write_report(folder, config, summary, rows, arms=arms, ours=_protocol(table, len(questions)), plots=plots)
    return folder, summary


def _rows(table: Table, questions: Sequence[Question]) -> Sequence[Mapping[str, Any]]:
    wanted = {question.id for question in questions}
    ours = () if table.beside is None else [row for rows in table.beside.methods.values() for row in rows]
    theirs = [_row(question, system) for system in table.systems for question in questions]
    return [*(row for row in ours if row["id"] in wanted), *theirs]


def _row(question: Question, system: Imported) -> dict[str, Any]:
    """A row of `samples.jsonl`: what the file does not state is null, never a guess."""
    prediction = system.predictions[question.id]
    spent = {
        "latency_s": prediction.seconds or 0.0,
        "timed": prediction.seconds is not None,
        "llm_calls": prediction.calls,
        "cached_calls": 0,
        "tokens": {"prompt": prediction.prompt_tokens, "cache_hit": 0, "completion": prediction.completion_tokens},
        "cost_usd": None,
        "paid_usd": None,
    }
    head = {**asked(question, system.name), "prediction": prediction.text}
    none = {"rounds": [], "notes": [], "support": None, "joint": None, **spent}
    if prediction.text is None:
        unscored = dict.fromkeys(("em", "f1", "precision", "recall"))
        return {**head, **unscored, **none, "error": f"ImportedError: {system.file} contains no answer"}
    score = score_answer(prediction.text, question.golds)
    return {
        **head,
        "answer": prediction.text,
        **vars(score),
        "stop_reason": MODE,
        "fired": False,
        "chosen": 0,
        "suspect": [],
        **none,
        "error": None,
    }


def _method(system: Imported) -> Method:
    about = f"imported from {system.file}"
    return Method(name=system.name, citation="", about=about, departures="", answer=_unanswered)


async def _unanswered(engine: Engine, task: MethodTask) -> Answer:
    raise DataFileError(f"The answer of {task.method!r} was imported; it cannot be generated again.")


def _config(table: Table, names: Sequence[str], n: int) -> dict[str, Any]:
    loaded = table.loaded
    return {
        "experiment": {"dataset": table.dataset, "mode": MODE, "methods": list(names), "n": n, "seed": table.seed},
        "dataset": {"source": loaded.source, "sha256": loaded.sha256, "aliases_sha256": loaded.aliases_sha256},
        "provider": {"name": MODE, "base_url": None, "models": {}, "embedded_model": None},
        "prompts": {},
        "deficits": {},
        "settings": {},
        "beside": None if table.beside is None else table.beside.name,
        "imported": [
            {
                "name": system.name,
                "file": system.file,
                "sha256": system.sha256,
                "schema": system.schema,
                "predictions": len(system.predictions),
                "unknown": system.unknown,
            }
            for system in table.systems
        ],
    }


def _protocol(table: Table, n: int) -> Protocol:
    aliases = any(question.aliases for question in table.loaded.questions)
    return Protocol(
        dataset=table.dataset,
        evidence=_THEIRS,
        sample=f"{n} that all rows have",
        n=n,
        scorer=SCORER,
        aliases=True if aliases else None,
        model=_THEIRS,
    )
