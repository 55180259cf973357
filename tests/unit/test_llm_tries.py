"""How often a failed call is retried, and after what pause."""

import pytest

from meta_agent_rag.errors import BusyError, LostConnectionError, ModelError, TransientError, UnreachableError
from meta_agent_rag.llm.client import Tries


@pytest.mark.parametrize(
    ("most", "failed", "made"),
    [
        (5, LostConnectionError("x"), 5),
        (0, LostConnectionError("x"), 0),
        (5, TransientError("x"), 2),
        (1, TransientError("x"), 1),
        (5, UnreachableError("x"), 5),
        (3, BusyError("x"), 3),
    ],
)
def test_retries_depend_on_the_error(most: int, failed: ModelError, made: int) -> None:
    tries = Tries(most=most)
    assert [tries.another(failed) for _ in range(8)] == [True] * made + [False] * (8 - made)
