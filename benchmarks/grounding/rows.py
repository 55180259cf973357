"""A grounded answer to a question whose gold answer is known, as a row."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from meta_agent_rag.agent.grounded import GroundedAnswer
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import DataFileError
from meta_agent_rag.retrieval.passage import Passage, passages_of

from ..calibration.fit import RIGHT
from ..metrics import score_answer


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was drafted, what was shown of it, and whether that is right.

    `answerable` questions were given all of their paragraphs, the others only those without a supporting fact.
    `drafted` is the short answer before the checks, empty where the draft abstained; `refused` the reason why it was
    withheld. A short answer is right from an F1 of 0.5.
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

    @property
    def draft_is_right(self) -> bool:
        """Is the drafted answer right?"""
        return self.draft_f1 >= RIGHT

    @property
    def is_shown(self) -> bool:
        """Was an answer shown?"""
        return self.refused is None

    @property
    def shown_is_right(self) -> bool:
        """Was a right answer shown?"""
        return self.is_shown and self.shown_f1 >= RIGHT


def evidence_for(question: Question, *, answerable: bool) -> tuple[Passage, ...]:
    """All paragraphs of a question, or those without a supporting fact."""
    return passages_of(one for one in question.paragraphs if answerable or not one.is_supporting)


def row(question: Question, answered: GroundedAnswer, *, answerable: bool) -> Row:
    """The row of an answer."""
    chosen = answered.answer.rounds[answered.answer.chosen] if answered.answer.rounds else None
    abstained = chosen is None or chosen.draft.abstained
    drafted = "" if abstained else answered.answer.short_answer
    sure, totals = answered.confidence, answered.totals
    return Row(
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
    )


def read_rows(file: Path) -> list[Row]:
    """The rows of a file. Raises `DataFileError` with the line of one that is none."""
    names = {field.name for field in fields(Row)}
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            content = json.loads(line)
            rows.append(Row(**{name: content[name] for name in names}))
        except (ValueError, KeyError, TypeError):
            raise DataFileError(
                f"{file.name}, line {number}, is not a row of this command; name another file."
            ) from None
    return rows


def _f1(short_answer: str, golds: Iterable[str]) -> float:
    return score_answer(short_answer, list(golds)).f1 if short_answer else 0.0
