"""What the checks on grounded answers withhold and let through: `python -m benchmarks.grounded --help`."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer, checked
from meta_agent_rag.cli.shared.command import Debug, Json, complain, print_json, reporting, say
from meta_agent_rag.datasets import HubAccess, Question, discover, load_questions
from meta_agent_rag.errors import DataFileError, InputError, MetaRagError
from meta_agent_rag.journal import Journal, records
from meta_agent_rag.llm.opening import described
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.retrieval.passage import Passage, passages_of
from meta_agent_rag.settings import Settings
from meta_agent_rag.wording import counted

from .metrics import RIGHT, score_answer
from .run.sampling import by_position
from .statistics import binomial_interval
from .tables import Table, as_markdown

_LOG = logging.getLogger(__name__)

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(frozen=True, kw_only=True)
class GroundedRow:
    """What was drafted, what was shown of it, and whether that is right.

    `answerable` questions were given all of their paragraphs, the others only those without a supporting fact.
    `drafted` is the short answer before the checks, empty where the draft abstained; `refused` the reason why it was
    withheld; `sufficient` the critic's probability that the passages answer the question. A short answer is right from
    an F1 of 0.5.
    """

    id: str
    answerable: bool
    drafted: str
    draft_f1: float
    shown: str
    shown_f1: float
    refused: str | None
    level: str | None
    score: float | None
    p_correct: float | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    sufficient: float | None = None
    model: str = ""

    @property
    def draft_is_right(self) -> bool:
        """Whether the drafted answer is right."""
        return self.draft_f1 >= RIGHT

    @property
    def shown_is_right(self) -> bool:
        """Whether a right answer was shown."""
        return self.refused is None and self.shown_f1 >= RIGHT


def evidence_for(question: Question, *, answerable: bool) -> tuple[Passage, ...]:
    """All paragraphs of a question, or those without a supporting fact."""
    return passages_of(one for one in question.paragraphs if answerable or not one.is_supporting)


def row(question: Question, answered: GroundedAnswer, *, answerable: bool) -> GroundedRow:
    """The row of an answer."""
    chosen = answered.answer.rounds[answered.answer.chosen] if answered.answer.rounds else None
    abstained = chosen is None or chosen.draft.abstained
    drafted = "" if abstained else answered.answer.short_answer
    sure, totals = answered.confidence, answered.totals
    return GroundedRow(
        id=question.id,
        answerable=answerable,
        drafted=drafted,
        draft_f1=_f1(drafted, question.golds),
        shown=answered.short_answer,
        shown_f1=_f1(answered.short_answer, question.golds),
        refused=answered.refused,
        level=None if sure is None else sure.level,
        score=None if sure is None else sure.score,
        p_correct=None if chosen is None else chosen.p_correct,
        calls=totals.calls,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        sufficient=answered.sufficient,
    )


def read_rows(file: Path) -> list[GroundedRow]:
    """The rows of a file. Raises `DataFileError` with the line of one that is none."""
    rows = []
    for number, (_, content) in enumerate(records(file), start=1):
        if content is None:  # torn by a kill
            continue
        try:
            rows.append(TypeAdapter(GroundedRow).validate_python(content))
        except ValidationError:
            raise DataFileError(
                f"{file.name}, line {number}, is not a row of this command; name another file."
            ) from None
    return rows


def _f1(short_answer: str, golds: Iterable[str]) -> float:
    return score_answer(short_answer, list(golds)).f1 if short_answer else 0.0


def quality(rows: Sequence[GroundedRow]) -> Table:
    """The shares, with exact 95 % intervals."""
    answerable, others = ([row for row in rows if row.answerable is kind] for kind in (True, False))
    right = [row for row in answerable if row.draft_is_right]
    shown, all_shown = [row for row in answerable if row.refused is None], [row for row in rows if row.refused is None]
    cells = [
        ("answerable questions shown an answer", *_share(shown, answerable)),
        ("right drafts withheld", *_share([row for row in right if not row.shown_is_right], right)),
        ("wrong among shown answers", *_share([row for row in shown if not row.shown_is_right], shown)),
        ("unanswerable questions refused", *_share([row for row in others if row.refused is not None], others)),
        (
            "wrong among shown answers, unanswerable questions included",
            *_share([row for row in all_shown if not (row.answerable and row.shown_is_right)], all_shown),
        ),
    ]
    return Table(name="grounded", title="Grounded answers", head=("", "n", "of", "% [95 %]"), rows=cells)


def levels(rows: Sequence[GroundedRow]) -> Table:
    """How often shown answers to answerable questions are right, by level of confidence."""
    cells = []
    for level in ("high", "medium", "low"):
        own = [row for row in rows if row.answerable and row.refused is None and row.level == level]
        cells.append((level, *_share([row for row in own if row.shown_is_right], own)))
    head = ("confidence", "right", "of", "% [95 %]")
    return Table(name="grounded-levels", title="Right answers by level of confidence", head=head, rows=cells)


def reasons(rows: Sequence[GroundedRow]) -> Table:
    """Why answers were withheld: from right drafts, from wrong ones, and to unanswerable questions."""
    withheld = [row for row in rows if row.refused is not None]
    groups = (
        Counter(row.refused for row in withheld if row.answerable and row.draft_is_right),
        Counter(row.refused for row in withheld if row.answerable and not row.draft_is_right),
        Counter(row.refused for row in withheld if not row.answerable),
    )
    names = sorted({row.refused or "" for row in withheld}, key=lambda name: (-sum(one[name] for one in groups), name))
    cells = [(name, *(str(one[name]) for one in groups)) for name in names]
    head = ("reason", "right drafts", "wrong drafts", "unanswerable questions")
    return Table(name="grounded-reasons", title="Why answers were withheld", head=head, rows=cells)


def _share(part: Sequence[GroundedRow], whole: Sequence[GroundedRow]) -> tuple[str, str, str]:
    """A count, of how many, and the percentage with its exact interval."""
    if not whole:
        return ("0", "0", "-")
    low, high = binomial_interval(len(part), len(whole))
    return (str(len(part)), str(len(whole)), f"{100 * len(part) / len(whole):.0f} [{100 * low:.0f}, {100 * high:.0f}]")


@app.command()
@reporting
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Rows, one per line; an existing file is continued.")],
    dataset: Annotated[str | None, typer.Option(help="Data set with supporting facts.", show_default="sample")] = None,
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
    rows = read_rows(out) if out.exists() else []
    if not report:
        settings = Settings.load(set_ or ())
        registry, access = discover(settings.datasets_dir), HubAccess(token=settings.hf_token, revision=revision)
        loaded = load_questions(dataset or "sample", data_file=data_file, registry=registry, access=access).questions
        known = {(one.id, one.answerable) for one in rows}
        asked = [pair for pair in _asked(loaded, answerable, unanswerable) if (pair[0].id, pair[1]) not in known]
        if others := {one.model for one in rows} - {"", _models(settings)}:
            raise InputError(f"{out.name} has rows of another model ({others.pop()}); name another file.")
        rows += asyncio.run(_answered(asked, out, settings, concurrency))
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
    with_all = [(question, True) for question in by_position(questions, answerable)] if answerable else []
    without = [(question, False) for question in by_position(questions, unanswerable)] if unanswerable else []
    for one, _ in (*with_all, *without):
        if not any(part.is_supporting for part in one.paragraphs):
            raise InputError(f"Question {one.id!r} has no supporting paragraph; choose a data set that labels them.")
    return [*with_all, *without]


def _models(settings: Settings) -> str:
    return ", ".join(dict.fromkeys(choose_provider(settings).models.values()))


async def _answered(
    asked: Sequence[tuple[Question, bool]], out: Path, settings: Settings, most: int
) -> list[GroundedRow]:
    checks, slots, rows = Checks.of(settings), asyncio.Semaphore(most), list[GroundedRow]()
    if asked:
        _LOG.info("Model: %s.", described(settings))
    journal, failed = Journal(out), 0
    async with open_engine(settings) as engine:

        async def ask(question: Question, answerable: bool) -> None:
            nonlocal failed
            async with slots:
                evidence = evidence_for(question, answerable=answerable)
                try:
                    answer = await engine.answer(question.text, evidence=evidence, grounded=True)
                    found = row(question, await checked(engine, answer, checks), answerable=answerable)
                except MetaRagError as error:
                    if error.stops_run:
                        raise
                    failed += 1
                    _LOG.warning("%s failed: %s", question.id, error)
                    return
            rows.append(replace(found, model=_models(settings)))
            journal.append(asdict(rows[-1]))

        await asyncio.gather(*(ask(question, kind) for question, kind in asked))
    journal.close()
    if failed:
        complain(f"{counted(failed, 'question')} failed; the same command asks them again.")
    return rows


if __name__ == "__main__":
    app()
