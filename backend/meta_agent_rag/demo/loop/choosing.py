"""From what a visitor picked and typed to what is asked."""

from collections.abc import Sequence

from ..questions import Question, QuestionSet
from ..workbench import Workbench
from .visit import Setup
from .what_if import WhatIf

OWN = "own"
PARAGRAPHS = "paragraphs"
_LISTED = 300
"""Questions of a set that are listed; a link leads to any other."""


def choices(one: QuestionSet, *, also: Question | None = None) -> list[tuple[str, str]]:
    """What can be picked, as (label, id): a question of one's own, then those of a set."""
    listed = {question.id: question.text for question in one.questions[:_LISTED]}
    if also is not None:
        listed.setdefault(also.id, also.text)
    return [("Write my own …", OWN), *((label, id_) for id_, label in listed.items())]


def setup(workbench: Workbench, chosen: str, text: str, evidence: str, what_ifs: Sequence[WhatIf]) -> Setup:
    """What is asked; the paragraphs of the chosen question unless a corpus was named."""
    return Setup(
        text=text,
        chosen=workbench.question(chosen),
        corpus=None if evidence == PARAGRAPHS else evidence,
        what_ifs=tuple(what_ifs),
    )
