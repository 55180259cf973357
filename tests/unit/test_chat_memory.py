"""When exchanges are folded, the bounds on memory, and what happens if folding fails."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.history import FOLD_AT, LONGEST_SUMMARY, MOST, History, kept
from meta_agent_rag.chat.store import Stored
from meta_agent_rag.errors import (
    CostLimitError,
    DeadlineError,
    MetaRagError,
    RefusedError,
)
from meta_agent_rag.testing import ScriptedModel
from tests.loop import user_text
from tests.talk import SCRIPT, conversation, history_of, say


async def talked(
    folder: Path, turns: int, *assignments: str, model: ScriptedModel | None = None
) -> tuple[History, ScriptedModel, list[int]]:
    """A conversation of `turns` questions: its history, its model, and the turns after which it folded."""
    model = model or ScriptedModel(SCRIPT)
    folded: list[int] = []
    async with conversation(folder, model, *assignments) as talk:
        for turn in range(1, turns + 1):
            before = len(model.asked("summarize"))
            await say(talk, f"Who designed the Pennant Bridge number {turn}?")
            folded += [turn] * (len(model.asked("summarize")) - before)
            assert len(talk.history.exchanges) <= MOST
    return talk.history, model, folded


async def test_twenty_turns_cost_four_compactions(tmp_path: Path) -> None:
    history, model, folded = await talked(tmp_path, 20)
    assert folded == [8, 12, 16, 20]
    assert [exchange.turn for exchange in history.exchanges] == [17, 18, 19, 20]
    assert history.summary == "They spoke about Mira Holt."
    first, second, *_ = [user_text(request) for request in model.asked("summarize")]
    assert "(nothing yet)" in first
    assert "number 1?" in first
    assert "number 4?" in first
    assert "number 5?" not in first
    assert "They spoke about Mira Holt." in second
    assert {request.model for request in model.asked("summarize")} == {"deepseek-v4-flash"}


async def test_memory_is_bounded_over_100_turns(tmp_path: Path) -> None:
    long = "It was a dark night at sea and nobody saw the light. " * 60
    model = ScriptedModel({**SCRIPT, "summarize": long})
    history, _, folded = await talked(tmp_path, 100, model=model)
    assert folded == list(range(8, 101, 4))
    assert (history.turns, history.dropped, len(history.exchanges)) == (100, 0, 4)
    assert len(history.summary) <= LONGEST_SUMMARY
    assert history.summary.endswith("light.")
    sizes = [len(user_text(request)) for request in model.asked("summarize")][1:]
    assert max(sizes) - min(sizes) < 50
    assert len(Stored(corpus="", history=history).as_json()) < 4000


@pytest.mark.parametrize(("name", "kept"), [("buffer", 8), ("none", 0)])
async def test_memories_without_a_summary_never_call(tmp_path: Path, name: str, kept: int) -> None:
    history, model, folded = await talked(tmp_path, 20, f"MEMORY={name}")
    assert folded == []
    assert model.asked("summarize") == []
    assert (len(history.exchanges), history.dropped, history.turns) == (kept, 20 - kept, 20)
    assert history.summary == ""


@pytest.mark.parametrize("fault", [RefusedError("no"), DeadlineError("late"), CostLimitError("dear")])
async def test_a_failed_fold_loses_nothing_and_is_retried(tmp_path: Path, fault: MetaRagError) -> None:
    history = history_of(*"abcdefgh", summary="Before.")
    model = ScriptedModel({**SCRIPT, "summarize": [fault, "Then more."]})
    async with conversation(tmp_path, model, history=history) as talk:
        (note,) = await talk.settle()
        assert str(fault) in note
        assert talk.history == history
        assert await talk.settle() == ()
        assert talk.history.summary == "Then more."
        assert [exchange.turn for exchange in talk.history.exchanges] == [5, 6, 7, 8]


async def test_if_folding_always_fails_the_oldest_are_dropped_at_the_hard_limit(tmp_path: Path) -> None:
    model = ScriptedModel({**SCRIPT, "summarize": RefusedError("no")})
    async with conversation(tmp_path, model) as talk:
        notes = [(await say(talk, f"Who designed the Pennant Bridge number {turn}?")).notes for turn in range(40)]
    assert len(talk.history.exchanges) == MOST == 32
    assert (talk.history.turns, talk.history.dropped) == (40, 8)
    assert talk.history.exchanges[-1].turn == 40
    assert not any("forgotten" in note for note in sum(notes[:32], ()))
    assert all(any("forgotten: 1." in note for note in turn) for turn in notes[32:])
    assert len(user_text(model.asked("summarize")[-1])) < 3000 / 0.35 + 2000


@pytest.mark.parametrize("memory", ["summary_buffer", "buffer", "none"])
@given(answers=st.lists(st.text(max_size=300), max_size=30), tokens=st.integers(10, 400))
def test_what_is_kept_is_bounded_and_stays_until_new_exchanges_arrive(
    memory: str, answers: list[str], tokens: int
) -> None:
    exchanges = history_of(*answers).exchanges
    number = kept(exchanges, memory, tokens)
    assert min(len(exchanges), memory != "none") <= number <= min(FOLD_AT, len(exchanges))
    # folding the exchanges just kept would cost a call every turn
    again = kept(exchanges[len(exchanges) - number :], memory, tokens)
    assert again == number or number >= FOLD_AT
