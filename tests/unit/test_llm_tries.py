"""How often a failed call is retried, and after what pause."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from meta_agent_rag.errors import LostConnectionError, ModelError, RefusedError, TransientError, UnreachableError
from meta_agent_rag.llm.pacing import Tries, pause, requested_pause


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
    assert requested_pause(headers) == seconds


def test_a_retry_date_is_read() -> None:
    soon = requested_pause({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)})
    assert soon is not None
    assert 20 <= soon <= 31


def test_pauses_grow_up_to_a_limit() -> None:
    assert 0.375 <= pause(0) <= 0.5
    assert 0.75 <= pause(1) <= 1.0
    assert 6.0 <= pause(40) <= 8.0
