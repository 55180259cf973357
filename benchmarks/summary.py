"""`summary.json`: the figures of a run, a method at a time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from .statistics import bootstrap_ci, percentiles

SCORES = ("em", "f1", "precision", "recall")
STAGES = ("retrieved", "packed", "quoted")
_TOKENS = ("prompt", "cache_hit", "completion")
_CURVE = ("p50", "p75", "p90", "p99")
Row = Mapping[str, Any]


def summarise(
    rows: Sequence[Row], *, dataset: str, mode: str, methods: Sequence[str], n: int, seed: int, deficits: Sequence[str]
) -> dict[str, Any]:
    """The summary of a run over `n` questions.

    Scores are percent over all `n` questions: one that failed, or was not reached, earns nothing and
    is counted under `errors` or missing from `answered`.
    """
    by_method = {name: [row for row in rows if row["method"] == name] for name in methods}
    return {
        "dataset": dataset,
        "mode": mode,
        "n": n,
        "seed": seed,
        "methods": {
            name: method_summary(found, n=n, seed=seed, deficits=deficits) for name, found in by_method.items()
        },
    }


def method_summary(rows: Sequence[Row], *, n: int, seed: int, deficits: Sequence[str]) -> dict[str, Any]:
    """The figures of one method; `rows` are its questions in any order."""
    rows = sorted(rows, key=lambda row: str(row["id"]))
    answered = [row for row in rows if row["error"] is None]
    missing = [0.0] * (n - len(answered))
    values = {score: [100.0 * row[score] for row in answered] + missing for score in SCORES}
    fired = [row for row in answered if row["fired"]]
    latencies = [row["latency_s"] for row in answered]
    return {
        "n": n,
        "answered": len(answered),
        "errors": len(rows) - len(answered),
        **{score: round(sum(values[score]) / n, 2) for score in SCORES},
        "em_ci95": _interval(values["em"], seed),
        "f1_ci95": _interval(values["f1"], seed),
        "latency_s": {
            **(percentiles(latencies) if latencies else dict.fromkeys(_CURVE)),
            "cached_calls": sum(row["cached_calls"] for row in rows),  # served by the response cache, in no time
        },
        "llm_calls": sum(row["llm_calls"] for row in rows),
        "tokens": {kind: sum(row["tokens"][kind] for row in rows) for kind in _TOKENS},
        "cost_usd": _cost(rows),
        "rounds_mean": round(sum(len(row["rounds"]) for row in answered) / len(answered), 3) if answered else None,
        "trigger_rate": round(len(fired) / len(answered), 4) if answered else None,
        "stop_reasons": dict(sorted(Counter(row["stop_reason"] for row in answered).items())),
        "deficits": {name: _diagnosed(answered, name) for name in deficits},
        "fixed": sum(_first(row) < 1.0 <= row["em"] for row in fired),
        "broken": sum(row["em"] < 1.0 <= _first(row) for row in fired),
        "evidence_recall": _evidence_recall(answered),
        "suspect_passages": sum(len(row["suspect"]) for row in answered),
        "shortened_passages": sum(len(row["rounds"][-1]["packing"]["shortened_ids"]) for row in answered),
        "left_out_passages": sum(len(row["rounds"][-1]["packing"]["left_out_ids"]) for row in answered),
    }


def _interval(values: Sequence[float], seed: int) -> list[float]:
    low, high = bootstrap_ci(values, seed=seed)
    return [round(low, 2), round(high, 2)]


def _cost(rows: Sequence[Row]) -> float | None:
    """Price of all calls in USD, also of those that the response cache served; `None` where any is unknown."""
    costs = [row["cost_usd"] for row in rows]
    if not costs or any(cost is None for cost in costs):
        return None
    return float(sum(Decimal(str(cost)) for cost in costs))


def _diagnosed(rows: Sequence[Row], deficit: str) -> int:
    """Repairs of a deficit, over all rounds."""
    plans = [round_["plan"] for row in rows for round_ in row["rounds"] if round_["plan"] is not None]
    return sum(plan["deficit"] == deficit for plan in plans)


def _evidence_recall(rows: Sequence[Row]) -> list[dict[str, float]]:
    """For each round, over the questions that reached it: the share of supporting paragraphs a stage, in percent."""
    depth = max((len(row["rounds"]) for row in rows), default=0)
    reached = [
        [row["rounds"][index].get("evidence_recall") for row in rows if len(row["rounds"]) > index]
        for index in range(depth)
    ]
    return [
        {"round": index, "n": len(known)}
        | {stage: round(100.0 * sum(one[stage] for one in known) / len(known), 2) for stage in STAGES}
        for index, known in enumerate([one for one in found if one is not None] for found in reached)
        if known
    ]


def _first(row: Row) -> float:
    return float(row["rounds"][0]["em"])
