"""The contract of every memory, whichever file it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.memories import Limits, Memory, discover_memories, memory_named
from meta_agent_rag.discovery import by_name
from meta_agent_rag.errors import DuplicateNameError, UnknownNameError
from tests.talk import history_of

MEMORIES = list(discover_memories().values())
LIMITS = st.builds(
    lambda keep, more, tokens: Limits(exchanges=keep, fold_at=keep + more, tokens=tokens),
    st.integers(0, 8),
    st.integers(1, 8),
    st.integers(10, 400),
)
ANSWERS = st.lists(st.text(max_size=300), max_size=30)


def test_memories_are_discovered() -> None:
    assert {"summary_buffer", "buffer", "none"} <= set(discover_memories())


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.name)
@given(answers=ANSWERS, limits=LIMITS)
def test_sharing_keeps_every_exchange_in_order(memory: Memory, answers: list[str], limits: Limits) -> None:
    exchanges = history_of(*answers).exchanges
    share = memory.share(exchanges, limits)
    assert (*share.dropped, *share.folded, *share.kept) == exchanges
    assert len(share.kept) <= limits.fold_at


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.name)
@given(answers=ANSWERS, limits=LIMITS)
def test_kept_exchanges_stay_until_new_ones_arrive(memory: Memory, answers: list[str], limits: Limits) -> None:
    kept = memory.share(history_of(*answers).exchanges, limits).kept
    again = memory.share(kept, limits)
    # folding the exchanges just kept would cost a call every turn
    assert again.kept == kept or len(kept) >= limits.fold_at


def test_names_are_unique_and_registered() -> None:
    (memory, *_) = MEMORIES
    with pytest.raises(DuplicateNameError, match=repr(memory.name)):
        by_name([memory, memory], "memories")
    with pytest.raises(UnknownNameError, match=r"no memory 'elephant'; choose from: buffer, .*none, summary_buffer"):
        memory_named("elephant")
