"""A finished run scored again without answering again: by another scorer, or with verdicts of a judge."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from meta_agent_rag.cli.shared.command import run
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError, MetaRagError
from meta_agent_rag.journal import records
from meta_agent_rag.llm.opening import open_language_model

from ..judge import Judge
from ..metrics import scorer_named
from ..rows.samples import require_whole, rescored
from .benchmarking import new_folder, say_results, write_results
from .config import RunConfig
from .display import DisplayName
from .folder import SAMPLES, RunFolder
from .provenance import carried_settings

_AT_ONCE = 8


def rescore(
    config: RunConfig,
    earlier: RunFolder,
    given: frozenset[str],
    *,
    scorer: str | None,
    output_dir: Path,
    plots: bool,
    display_name: DisplayName,
) -> Path:
    """Score the answers of an earlier run into a new folder; its cost limit counts that run's calls too.

    `given` are the settings of this command line, for the judge. An answer that has a verdict keeps it. Raises
    `InputError` if the run has no answer, and what stopped the judge, after saving everything.
    """
    before = earlier.config()
    settings = carried_settings(config.settings, before["settings"], given)
    own = replace(config, settings=settings).as_begun(before["experiment"])
    own = replace(
        own, judge=config.judge or own.judge, scorer=scorer or own.scorer, model_words=before.get("model_words", "")
    )
    found = list(earlier.rows().values())
    require_whole(found, earlier.path / SAMPLES)
    if not any(row["error"] is None for row in found):
        raise InputError(f"The run {earlier.path.name!r} has no answers to score; continue it with --resume first.")
    score = scorer_named(own.scorer)
    rows = [rescored(row, score) if row["error"] is None else dict(row) for row in found]
    about = {**before, "experiment": own.experiment, "rescored": earlier.path.name}
    folder = new_folder(own, output_dir, {**about, "settings": settings.model_dump(mode="json")})
    folder.write_calls(row for _, row in records(earlier.calls) if row is not None)
    stopped_by = run(_judge_all(own, folder, rows)) if own.judge else None
    for row in rows:
        folder.add(row)
    folder.close()
    summary = write_results(own, folder, rows, plots=plots)
    say_results(own, folder, summary, display_name)
    if stopped_by is not None:
        raise stopped_by
    return folder.path


async def _judge_all(config: RunConfig, folder: RunFolder, rows: Sequence[dict[str, Any]]) -> MetaRagError | None:
    """Add the verdicts that are missing; returns the error that stopped the judge, if any."""
    stopped_by: list[MetaRagError] = []
    async with open_language_model(
        config.settings, ledger_path=folder.calls, paid_usd=folder.paid_usd(), reservations=folder.reservations
    ) as model:
        judge, free = Judge(model=model), asyncio.Semaphore(config.concurrency or _AT_ONCE)

        async def judged(row: dict[str, Any]) -> None:
            row.setdefault("judge", None)
            async with free:
                if row["judge"] is not None or stopped_by:
                    return
                try:
                    row["judge"] = await judge.verdict(_question(row), row["prediction"])
                except MetaRagError as error:
                    stopped_by.append(error)

        await asyncio.gather(*(judged(row) for row in rows if row["error"] is None))
    return stopped_by[0] if stopped_by else None


def _question(row: dict[str, Any]) -> Question:
    """What a judge reads of a row's question."""
    return Question(
        id=row["id"], text=row["question"], answer=row["gold"], aliases=tuple(row["aliases"]), paragraphs=()
    )
