"""The graph's wiring, the state's reducers and the reply schemas."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.state import add_found
from meta_agent_rag.errors import InputError, UnknownNameError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Found
from meta_agent_rag.testing import ScriptedModel
from tests.loop import EVIDENCE, QUESTION, WRONG, passage, settings_in


@pytest.mark.parametrize("grounded", [False, True])
@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ([passage("a", "Oslo"), passage("a", "Bergen")], "Two passages have the id 'a'"),
        (["Oslo"], "Evidence must be passages with an id, a title and a text, not str"),
        (passage("a", "Oslo"), "Evidence must be a list of passages, not Passage"),
    ],
)
async def test_evidence_that_cannot_be_told_apart_or_read_is_refused(
    tmp_path: Path, evidence: Any, said: str, grounded: bool
) -> None:
    async with open_engine(settings_in(tmp_path), model=ScriptedModel({})) as engine:
        with pytest.raises(InputError, match=said):
            await engine.answer("Where?", evidence=evidence, grounded=grounded)


async def test_an_engine_can_exclude_a_deficit(tmp_path: Path) -> None:
    model = ScriptedModel(WRONG)
    encoder = AsyncEncoder(HashEncoder())
    async with open_engine(
        settings_in(tmp_path), model=model, monitor_encoder=encoder, without_deficits=["reasoning_error"]
    ) as engine:
        answer = await engine.answer(QUESTION, evidence=EVIDENCE)
    assert "reasoning_error" not in model.asked("evaluate")[0].messages[-1].content
    assert answer.rounds[0].diagnosis is not None
    assert answer.rounds[0].diagnosis.source == "heuristic", "the critic named a deficit that it was not offered"
    with pytest.raises(UnknownNameError, match="no_such"):
        async with open_engine(settings_in(tmp_path), model=model, without_deficits=["no_such"]):
            pass


async def test_a_question_without_evidence_or_retriever_is_an_error(tmp_path: Path) -> None:
    model = ScriptedModel(WRONG)
    encoder = AsyncEncoder(HashEncoder())
    async with open_engine(settings_in(tmp_path), model=model, monitor_encoder=encoder) as engine:
        with pytest.raises(InputError, match="give evidence or a retriever"):
            await engine.answer(QUESTION)
        assert not model.requests
        from_memory = await engine.answer(QUESTION, evidence=())
    assert from_memory.evidence == ()
    assert model.requests


FOUND = st.lists(st.sampled_from("abcdef"), max_size=8).map(
    lambda ids: [Found(passage=passage(id_, f"text {id_}"), score=float(rank)) for rank, id_ in enumerate(ids)]
)


@given(known=FOUND, new=FOUND)
def test_evidence_is_appended_without_duplicates(known: list[Found], new: list[Found]) -> None:
    first = add_found((), known)
    both = add_found(first, new)
    ids = [found.passage.id for found in both]
    assert len(set(ids)) == len(ids)
    assert both[: len(first)] == first
    assert set(ids) == {found.passage.id for found in [*known, *new]}
    for found in both[len(first) :]:
        assert found is next(item for item in new if item.passage.id == found.passage.id), "the first of two is kept"
