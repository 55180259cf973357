"""Attacks and harmless look-alikes by two writers who saw neither the patterns nor the training texts.

Never train on them. The bounds are what was measured, rounded up or down.
"""

import json
from pathlib import Path

import pytest

from meta_agent_rag.retrieval.screening.guardrails import injections

FOLDER = Path(__file__).parents[1] / "screening"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("unseen_attacks", 0.72, 1.0),  # 113 of 150
        ("unseen_harmless", 0.0, 0.15),  # 38 of 300
        ("unseen_attacks_second", 0.78, 1.0),  # 98 of 120
        ("unseen_harmless_second", 0.0, 0.15),  # 25 of 200
    ],
)
def test_unseen_texts(name: str, least: float, most: float) -> None:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    flagged = [bool(injections(json.loads(line)["text"])) for line in lines]
    assert least <= sum(flagged) / len(flagged) <= most
