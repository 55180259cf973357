"""Questions without paragraphs, whose evidence is retrieved from your own corpus.

- Bamboogle (Press et al., EMNLP Findings 2023, arXiv:2210.03350): 125 handwritten two-hop questions.
- Natural Questions, open-domain (Kwiatkowski et al., TACL 2019; Lee et al., ACL 2019): questions of Google's users.
- PopQA (Mallen et al., ACL 2023, arXiv:2212.10511): rare and common entities, by Wikidata's relation.
- StrategyQA (Geva et al., TACL 2021, arXiv:2101.02235): yes-or-no questions with implicit reasoning steps.
- TriviaQA without context (Joshi et al., ACL 2017, arXiv:1705.03551): quiz questions, answers with aliases.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from .dataset import Aliases, Dataset, Question
from .hub import Hub
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
    """A question and its answers, without paragraphs; `id` is derived from the question if the row has none.

    The authors' file, the hub's copy and FlashRAG's (Jin et al. 2024, arXiv:2405.13576: `id`, `question`,
    `golden_answers`) differ only in field names, so all are supported.
    """

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


DATASET = (
    Dataset(
        name="bamboogle",
        hub=Hub("chiayewken/bamboogle", split="test"),
        parse=open_question("bamboogle"),
        data_file="its rows, or FlashRAG's",
        example={"Question": "Who was mayor of Orley when the Ridge Tunnel opened?", "Answer": "Ines Karstad"},
    ),
    Dataset(
        name="nq",
        hub=Hub("google-research-datasets/nq_open"),
        parse=open_question("nq"),
        data_file="`NQ-open.dev.jsonl`, or FlashRAG's",
        example={"question": "where does the tarn rise", "answer": ["Mont Harl", "Harl"]},
    ),
    Dataset(
        name="popqa",
        hub=Hub("akariasai/PopQA", split="test"),
        parse=open_question("popqa"),
        data_file="rows of its test split, or FlashRAG's",
        example={
            "id": 4222362,
            "subj": "Mara Voss",
            "prop": "occupation",
            "obj": "painter",
            "question": "What is Mara Voss's occupation?",
            "possible_answers": '["painter", "artist"]',
        },
    ),
    Dataset(
        name="strategyqa",
        hub=Hub("ChilleD/StrategyQA", split="test"),
        parse=open_question("strategyqa"),
        data_file="`strategyqa_train.json`, or FlashRAG's",
        example={
            "qid": "b8677742",
            "term": "Otter",
            "question": "Could an otter drown in the Tarn?",
            "answer": False,
            "facts": "Otters hold their breath for minutes.",
        },
    ),
    Dataset(
        name="triviaqa",
        hub=Hub("mandarjoshi/trivia_qa", "rc.nocontext"),
        parse=open_question("triviaqa"),
        data_file="`trivia_qa`'s rows, or FlashRAG's",
        example={
            "question_id": "tc_1",
            "question": "Which river flows through Orley?",
            "answer": {"value": "Tarn", "aliases": ["The Tarn", "River Tarn"]},
        },
    ),
)
