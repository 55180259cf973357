"""Shards of a sample."""

import pytest

from benchmarks.run.sampling import sharded
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError

QUESTIONS = tuple(Question(id=str(number), text=f"Q{number}?", answer="A", paragraphs=()) for number in range(3))


@pytest.mark.parametrize("shard", ["1/5", "5/5"])
def test_no_shard_is_empty(shard: str) -> None:
    with pytest.raises(InputError, match="there are only 3 questions"):
        sharded(QUESTIONS, shard)


def test_shards_of_one_question_each_are_possible() -> None:
    assert [sharded(QUESTIONS, f"{number}/3") for number in (1, 2, 3)] == [(one,) for one in QUESTIONS]
