"""How often a failed call is retried, and after what pause."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from meta_agent_rag.errors import LostConnectionError, ModelError, RefusedError, TransientError, UnreachableError
from meta_agent_rag.llm.pacing import Tries, pause


@pytest.mark.parametrize(
    ("most", "fault", "made"),
    [
        (5, LostConnectionError("x"), 5),
        (0, LostConnectionError("x"), 0),
        (5, TransientError("x"), 2),
        (1, TransientError("x"), 1),
        (5, UnreachableError("x"), 0),
        (5, RefusedError("x"), 0),
    ],
)
def test_retries_depend_on_the_error(most: int, fault: ModelError, made: int) -> None:
    tries = Tries(most=most)
    assert [tries.another(fault) for _ in range(8)] == [True] * made + [False] * (8 - made)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "2"}, 2, 2),
        ({"retry-after": "1.5"}, 1.5, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25, 0.25),
        ({"retry-after": "3600"}, 0.375, 0.5),
        ({"retry-after": "-1"}, 0.375, 0.5),
        ({"retry-after": "soon"}, 0.375, 0.5),
        ({"retry-after": "nan"}, 0.375, 0.5),
        ({}, 0.375, 0.5),
    ],
)
def test_the_requested_pause_is_respected_within_limits(headers: dict[str, str], low: float, high: float) -> None:
    assert low <= pause(0, headers) <= high


def test_a_retry_date_is_respected() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 20 <= pause(0, {"retry-after": soon}) <= 31


def test_pauses_grow_up_to_a_limit() -> None:
    assert 0.75 <= pause(1) <= 1.0
    assert 6.0 <= pause(40) <= 8.0
