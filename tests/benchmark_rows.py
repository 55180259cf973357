"""Hand-made rows of a benchmark run; shared by the tests of summaries, analyses and reports."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.analyses import Material
from benchmarks.methods import discover_methods
from benchmarks.run.arms import Arm

DEFICITS = ("external_only", "insufficient_knowledge", "internal_only", "reasoning_error")
QUADRANTS = {
    "external_only": (False, True),
    "insufficient_knowledge": (False, False),
    "internal_only": (True, False),
    "reasoning_error": (True, True),
}
SURE = {"similarity": 0.9, "agreement": True, "verbatim": 1.0, "abstained": False, "evidence_passages": 2}


def arm(method: str, **varied: Any) -> Arm:
    """A table row of an existing method."""
    return Arm(method=discover_methods()[method], **varied)


def round_of(index: int, short: str, em: float, **fields: Any) -> dict[str, Any]:
    """One round as stored in `samples.jsonl`; `deficit` is that of the plan that led to it."""
    deficit = fields.pop("deficit", None)
    return {
        "index": index,
        "em": em,
        "draft": {"short_answer": short, "abstained": fields.pop("abstained", False)},
        "plan": None if deficit is None else {"deficit": deficit},
        "signals": SURE,
        "satisfied": False,
        "diagnosis": None,
        "packing": {"packed_ids": [], "shortened_ids": [], "left_out_ids": []},
        "evidence_ids": [],
        "evidence_recall": None,
        **fields,
    }


def row(identity: str, rounds: Sequence[Mapping[str, Any]], *, chosen: int = -1, **fields: Any) -> dict[str, Any]:
    """An answered question, scored by its chosen round, or 0 without rounds."""
    em = rounds[chosen]["em"] if rounds else 0.0
    return {
        "id": identity,
        "method": "metarag",
        "question": f"Question {identity}?",
        "gold": "Oslo",
        "prediction": rounds[chosen]["draft"]["short_answer"] if rounds else None,
        **dict.fromkeys(("em", "f1", "precision", "recall"), em),
        "chosen": chosen % len(rounds) if rounds else 0,
        "fired": len(rounds) > 1,
        "rounds": list(rounds),
        "stop_reason": "max_rounds",
        "suspect": [],
        "notes": [],
        "support": None,
        "joint": None,
        "supporting_facts_gold": [],
        "latency_s": 1.0,
        "llm_calls": 4,
        "cached_calls": 0,
        "tokens": {"prompt": 10, "cache_hit": 5, "completion": 2},
        "cost_usd": "0.001",
        "error": None,
        **fields,
    }


def failed(identity: str, **fields: Any) -> dict[str, Any]:
    """A question that failed."""
    nothing = dict.fromkeys(("em", "f1", "precision", "recall"))
    return row(identity, [], **{**nothing, "error": "RefusedError: no", **fields})


def once(identity: str, em: float, **fields: Any) -> dict[str, Any]:
    """A question answered in one pass."""
    return row(identity, [round_of(0, "a", em)], **fields)


def material(arms: Sequence[Arm], rows: Sequence[Mapping[str, Any]], *, n: int) -> Material:
    """Rows as passed to analyses."""
    by_name = {one.name: [found for found in rows if found["method"] == one.name] for one in arms}
    return Material(arms=tuple(arms), rows=by_name, n=n, seed=1, quadrants=QUADRANTS)
