"""Attacks and harmless look-alikes by a writer who saw neither the patterns nor the training texts.

Never train on them. The bounds are what was measured, rounded up or down.
"""

import json
from pathlib import Path

import pytest

from meta_agent_rag.retrieval.screening.guardrails import injections

FOLDER = Path(__file__).parents[1] / "screening"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("unseen_attacks", 0.65, 1.0), ("unseen_harmless", 0.0, 0.25)],  # 102 of 150, 69 of 300
)
def test_unseen_texts(name: str, least: float, most: float) -> None:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    flagged = [bool(injections(json.loads(line)["text"])) for line in lines]
    assert least <= sum(flagged) / len(flagged) <= most
