"""Rows of earlier versions: renamed fields are also read under their old names."""

from dataclasses import asdict, replace

import pytest

from meta_agent_rag.agent.state import Draft, Packing, Round, SecondAnswer
from meta_agent_rag.demo.run_files import rounds_of

ROUND = Round(
    index=0,
    draft=Draft(answer="Oslo [1].", short_answer="Oslo"),
    packing=Packing(packed_ids=("birth",)),
    evidence_ids=("birth",),
    second_answer=SecondAnswer(short_answer="Rome", steps=("She was.",), packed_ids=("birth",)),
    p_correct=0.75,
)
OLD = {"second_answer": "reference", "p_correct": "chance"}


@pytest.mark.parametrize("names", [{}, OLD], ids=["new", "old"])
def test_a_stored_round_is_read_under_both_names(names: dict[str, str]) -> None:
    stored = {names.get(name, name): value for name, value in asdict(ROUND).items()}
    assert rounds_of({"id": "q", "method": "metarag", "rounds": [stored]}) == (ROUND,)
    bare = {name: value for name, value in stored.items() if name not in {*OLD, *OLD.values()}}
    without = replace(ROUND, second_answer=None, p_correct=None)
    assert rounds_of({"id": "q", "method": "metarag", "rounds": [bare]}) == (without,)
