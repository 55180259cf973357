"""Rows of a run with monitor signals, for tests of calibration."""

import random
from typing import Any

from tests.benchmark_rows import round_of
from tests.past_runs import row


def monitored(
    id_: str,
    *,
    similarity: float | None,
    agreement: bool | None,
    right: bool,
    fired: bool = False,
    at_last: bool | None = None,
) -> dict[str, Any]:
    """A row with its first round; `at_last` says whether the final answer is right; defaults to `right`."""
    signals = {
        "similarity": similarity,
        "agreement": agreement,
        "verbatim": 1.0,
        "abstained": False,
        "evidence_passages": 2,
    }
    final = right if at_last is None else at_last
    first = round_of(0, "Oslo" if right else "Rome", float(right), signals=signals, f1=float(right))
    return row((id_, "Oslo", "Oslo" if final else "Rome"), fired=fired, rounds=[first])


def telling(count: int, *, seed: int = 0, prefix: str = "q") -> list[dict[str, Any]]:
    """Rows in which agreement mostly separates right from wrong drafts and cosine similarity barely does."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        right = chance.random() < 0.5
        agreement = right if chance.random() < 0.85 else not right
        similarity = None if number % 10 == 9 else round(chance.uniform(0.3, 0.9) + 0.05 * right, 3)
        rows.append(
            monitored(
                f"{prefix}{number}",
                similarity=similarity,
                agreement=None if similarity is None else agreement,
                right=right,
                fired=not agreement,
                at_last=right or (not agreement and chance.random() < 0.4),
            )
        )
    return rows
