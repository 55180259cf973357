"""Methods that retrieve once: what they show the model, and how they vote."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.methods.chain_of_thought import ChainOfThought
from benchmarks.methods.self_consistency import majority
from tests.methods import ListRetriever, answered, numbered_passages


def chained(short: str, rationale: str = "She directed it.") -> dict[str, str]:
    return {"rationale": rationale, "short_answer": short}


def replies(*shorts: str) -> list[ChainOfThought]:
    return [ChainOfThought(rationale=str(place), short_answer=short) for place, short in enumerate(shorts)]


@pytest.mark.parametrize("name", ["standard_rag", "chain_of_thought"])
async def test_one_retrieval_and_one_call(name: str, tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(9))
    run = await answered(tmp_path, name, {}, "RETRIEVAL_TOP_K=3", retriever=retriever, question="Where?")
    assert retriever.asked == [("Where?", 3, frozenset())]
    assert run.stages == ["baseline"]
    assert [one.text in run.prompt("baseline") for one in numbered_passages(4)] == [True, True, True, False]
    only = run.answer.rounds[0]
    assert only.evidence_ids == only.packing.packed_ids == tuple(one.id for one in numbered_passages(3))


async def test_closed_book_prompts_show_no_evidence(tmp_path: Path) -> None:
    unused = ListRetriever(numbered_passages(3))
    for retriever in (None, unused):
        run = await answered(tmp_path, "closed_book", {}, retriever=retriever)
        assert "<passage" not in run.prompt("baseline")
        assert run.answer.evidence == ()
        assert run.answer.rounds[0].packing.packed_ids == ()
    assert not unused.asked


class TestSelfConsistency:
    """Several chains and one vote."""

    async def test_the_majority_wins(self, tmp_path: Path) -> None:
        script = {
            "baseline": [chained("Paris"), chained("oslo.", "First."), chained("Rome"), chained("Oslo", "Second.")]
        }
        run = await answered(tmp_path, "self_consistency", script, "SELF_CONSISTENCY_SAMPLES=4")
        assert (run.answer.short_answer, run.answer.text) == ("oslo.", "First.")
        assert run.answer.stop_reason == "majority"
        assert len(run.answer.rounds) == 1
        assert run.answer.rounds[0].calls == 4

    async def test_samples_share_one_prompt_and_are_independent(self, tmp_path: Path) -> None:
        run = await answered(tmp_path, "self_consistency", {}, "SELF_CONSISTENCY_SAMPLES=3", "RESPONSE_CACHE=true")
        assert sorted(request.draw for request in run.model.requests) == [0, 1, 2]
        assert {request.temperature for request in run.model.requests} == {0.7}
        assert len({request.messages for request in run.model.requests}) == 1
        assert len({row.request for row in run.answer.calls}) == 3
        assert not any(row.cached for row in run.answer.calls)

    @given(st.lists(st.sampled_from(["Oslo", "the oslo", "Rome", "rome.", "Bern"]), min_size=1, max_size=9))
    def test_the_elected_answer_has_the_most_votes(self, shorts: list[str]) -> None:
        plain = [short.lower().removeprefix("the ").rstrip(".") for short in shorts]
        won = majority(replies(*shorts))
        place = int(won.rationale)
        assert plain.count(plain[place]) == max(plain.count(short) for short in plain)
        assert plain.index(plain[place]) == place
