"""How often a failed call is retried, and after what pause."""

import pytest

from meta_agent_rag.errors import BusyError, LostConnectionError, ModelError, TransientError, UnreachableError
from meta_agent_rag.llm.client import Tries
from meta_agent_rag.llm.faults import fault
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings


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


class _RefusedError(Exception):
    """What a client raises for a response."""

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("later")
        self.status_code = 429
        self.response = type("Response", (), {"status_code": 429, "headers": headers})


def requested(headers: dict[str, str]) -> float | None:
    endpoint = choose_provider(Settings.load(llm_provider="deepseek", deepseek_api_key="k")).tiers["flash"]
    busy = fault(_RefusedError(headers), endpoint)
    assert isinstance(busy, BusyError)
    if busy.retry_after is not None:
        assert Tries(most=1).pause(busy) == busy.retry_after
    return busy.retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "inf"}, None),
        ({}, None),
    ],
)
def test_the_requested_pause_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert requested(headers) == seconds
