"""What the checks on grounded answers withhold and let through: `python -m benchmarks.grounded --help`."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, checked
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, Question, discover, load_questions
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.opening import described
from meta_agent_rag.settings import Settings

from .grounding.measures import levels, quality, reasons
from .grounding.rows import Row, evidence_for, read_rows, row
from .run.sampling import by_position
from .tables import as_markdown

_LOG = logging.getLogger(__name__)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Rows, one per line; an existing file is continued.")],
    dataset: Annotated[str, typer.Option(help="Data set with supporting facts.")] = "sample",
    data_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Official data file.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Revision of the data set on the hub.")] = None,
    answerable: Annotated[str | None, typer.Option(metavar="A-B", help="Rows asked with all their paragraphs.")] = None,
    unanswerable: Annotated[
        str | None, typer.Option(metavar="A-B", help="Rows asked without their supporting paragraphs.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions in progress at a time.")] = 4,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any setting.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Only report on the rows of FILE.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Ask questions of their own paragraphs, with and without the supporting ones, and check every answer.

    Reports how many right drafts are withheld, how many shown answers are wrong, how many unanswerable questions are
    refused, and how often shown answers are right at each level of confidence.
    """
    asked_for = {"--dataset": dataset != "sample", "--data-file": data_file, "--revision": revision}
    if report and (unused := [name for name, value in asked_for.items() if value]):
        raise InputError(f"--report reads {out.name} alone; leave {' and '.join(unused)} out.")
    rows = read_rows(out) if out.exists() else []
    if not report:
        settings = Settings.load(set_ or ())
        access = HubAccess(token=settings.hf_token, revision=revision)
        loaded = load_questions(
            dataset, data_file=data_file, registry=discover(settings.datasets_dir), access=access
        ).questions
        asked = _asked(loaded, answerable, unanswerable)
        known = {(one.id, one.answerable) for one in rows}
        missing = [pair for pair in asked if (pair[0].id, pair[1]) not in known]
        rows += asyncio.run(_answered(missing, out, settings, concurrency))
    if not rows:
        raise InputError("There are no rows yet; give --answerable A-B or --unanswerable A-B.")
    tables = [quality(rows), levels(rows), reasons(rows)]
    if as_json:
        print_json(
            {table.name: [dict(zip(table.head, cells, strict=True)) for cells in table.rows] for table in tables}
        )
        return
    for table in tables:
        say(f"\n{table.title}\n\n{as_markdown(table)}")


def _asked(
    questions: Sequence[Question], answerable: str | None, unanswerable: str | None
) -> list[tuple[Question, bool]]:
    asked = [
        (question, kind)
        for positions, kind in ((answerable, True), (unanswerable, False))
        if positions is not None
        for question in by_position(questions, positions)
    ]
    bare = next((one.id for one, _ in asked if not any(part.is_supporting for part in one.paragraphs)), None)
    if bare is not None:
        raise InputError(f"Question {bare!r} has no supporting paragraph; choose a data set that labels them.")
    return asked


async def _answered(asked: Sequence[tuple[Question, bool]], out: Path, settings: Settings, most: int) -> list[Row]:
    checks, slots, rows = Checks.of(settings, ""), asyncio.Semaphore(most), list[Row]()
    if asked:
        _LOG.info("Model: %s.", described(settings))
    async with open_engine(settings) as engine:

        async def ask(question: Question, answerable: bool) -> None:
            async with slots:
                evidence = evidence_for(question, answerable=answerable)
                answer = await engine.answer(question.text, evidence=evidence, grounded=True)
                found = row(question, await checked(engine, answer, checks), answerable=answerable)
            rows.append(found)
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(found), ensure_ascii=False) + "\n")

        await asyncio.gather(*(ask(question, kind) for question, kind in asked))
    return rows


if __name__ == "__main__":
    app()
