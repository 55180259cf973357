"""Rows of data sets without paragraphs: a question and its answers, in their publishers' formats.

The authors' file, the hub's copy and FlashRAG's (Jin et al. 2024, arXiv:2405.13576: `id`, `question`,
`golden_answers`) differ only in field names, so all are supported.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from ..dataset import Aliases
from ..question import Question
from .schema import Text


def _listed(value: object) -> object:
    """The answers as a list: from one text, a truth value, JSON in a text, or TriviaQA's value with its aliases."""
    if isinstance(value, dict) and "value" in value:
        aliases = value.get("aliases")
        return [value["value"], *(aliases if isinstance(aliases, list) else ())]
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    found = value if isinstance(value, list | tuple) else [value]
    return [("yes" if one else "no") if isinstance(one, bool) else one for one in found]


def _worded(value: object) -> object:
    """A numeric id as text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class OpenRow(BaseModel, frozen=True):
    """A question and its answers; `id` is derived from the question if the row has none."""

    id: Annotated[Text | None, BeforeValidator(_worded)] = Field(
        None, validation_alias=AliasChoices("id", "question_id", "qid")
    )
    question: Text = Field(validation_alias=AliasChoices("question", "Question"))
    answer: Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1)] = Field(
        validation_alias=AliasChoices("golden_answers", "possible_answers", "answer", "Answer")
    )
    prop: Text | None = None


def open_question(prefix: str) -> Callable[[object, Aliases], Question]:
    """A `Dataset.parse` for such rows; derived ids begin with `prefix`."""

    def parse(raw: object, _aliases: Aliases) -> Question:
        row = OpenRow.model_validate(raw)
        made = f"{prefix}-{hashlib.sha256(row.question.encode()).hexdigest()[:16]}"
        return Question(
            id=row.id or made,
            text=row.question,
            answer=row.answer[0],
            aliases=row.answer[1:],
            type=row.prop,
            paragraphs=(),
        )

    return parse
