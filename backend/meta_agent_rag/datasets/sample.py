"""The packaged sample: a few questions in HotpotQA's schema with `hops` and optionally `answer_aliases`."""

from pydantic import Field, StrictInt

from .dataset import Aliases, Dataset, Question
from .schema import HotpotRow, String, paragraphs


class _SampleRow(HotpotRow):
    hop_count: StrictInt = Field(ge=1, validation_alias="hops")
    answer_aliases: tuple[String, ...] = ()


def parse(raw: object, _aliases: Aliases) -> Question:
    """Convert a row of the sample."""
    row = _SampleRow.model_validate(raw)
    return Question(
        id=row.id,
        text=row.question,
        answer=row.answer,
        aliases=row.answer_aliases,
        type=row.type,
        hops=row.hop_count,
        paragraphs=paragraphs(row, spaced=True),
        supporting_facts=row.supporting_facts,
    )


DATASET = Dataset(
    name="sample",
    hub=None,
    packaged="questions.json",
    parse=parse,
    data_file="a file in HotpotQA's schema",
    example={
        "_id": "sample-1",
        "question": "Is the Mill Bridge older than the Tower Gate?",
        "answer": "yes",
        "answer_aliases": [],
        "type": "yes_no",
        "hops": 2,
        "supporting_facts": [["Mill Bridge", 0], ["Tower Gate", 0]],
        "context": [
            ["Mill Bridge", ["The Mill Bridge dates from 1412.", " It has four arches."]],
            ["Tower Gate", ["The Tower Gate dates from 1520.", " It lost its roof in a fire."]],
        ],
    },
)
