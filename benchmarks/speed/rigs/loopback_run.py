"""A benchmark run against a loopback server, for measurements of the package."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meta_agent_rag.datasets import Question, load_questions
from meta_agent_rag.settings import Settings

from ...run.config import RunConfig, RunOptions
from ...run.display import Silent
from ...run.execution import RunOutcome, execute
from ...run.folder import RunFolder


async def answered(
    address: str, questions: Sequence[Question], folder: Path, *, concurrency: int, **settings: Any
) -> RunOutcome:
    """Answer the questions with `metarag`, in a folder, with settings in addition to those that a loopback needs.

    Raises what stopped the run; failed answers are included.
    """
    chosen = Settings.load(
        (),
        llm_provider="deepseek",
        llm_base_url=address,
        deepseek_api_key="loopback",
        monitor_encoder="hash-64",
        marag_data_dir=folder / "data",
        **settings,
    )
    config = RunConfig(
        dataset="sample",
        mode="gold",
        methods=("metarag",),
        n=len(questions),
        limit=None,
        seed=42,
        data_file=None,
        aliases_file=None,
        corpus=None,
        concurrency=concurrency,
        settings=chosen,
    )
    outcome = await execute(
        config,
        RunOptions(),
        load_questions("sample"),
        questions=questions,
        folder=RunFolder(folder / "run"),
        display=Silent(),
    )
    if outcome.stopped_by is not None:
        raise outcome.stopped_by
    return outcome


def require_all(outcome: RunOutcome) -> None:
    """Raise `RuntimeError` with the first failure among the answers."""
    failed = [row["error"] for row in outcome.rows if row["error"] is not None]
    if failed:
        raise RuntimeError(failed[0])
