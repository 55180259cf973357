"""`summary.json`: the figures of a run by row of the table; the same rows in any order give the same bytes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.llm.pricing import Tariff
from meta_agent_rag.statistics.paired import bootstrap_ci

from ..analyses import Material, discover_analyses
from ..analyses.analysis import Quadrant, Row
from ..run.arms import Arm
from ..statistics import percentiles
from .survival import STAGES

SCORES = ("em", "f1", "precision", "recall")
_TOKENS = ("prompt", "cache_hit", "completion")
_CURVE = ("p50", "p75", "p90", "p99")


def summarise(
    rows: Sequence[Row],
    *,
    dataset: str,
    mode: str,
    methods: Sequence[str],
    n: int,
    seed: int,
    deficits: Sequence[str],
    arms: Sequence[Arm] = (),
    quadrants: Mapping[str, Quadrant | None] | None = None,
    analyses: Sequence[str] | None = None,
    tariffs: Mapping[str, Tariff] | None = None,
) -> dict[str, Any]:
    """The summary of a run over `n` questions.

    Scores are percent over all `n` questions: a question that failed, or was not reached, scores 0 and
    is counted under `errors` or missing from `answered`. What the loop did (rounds, triggers, survival, signals) is
    over answered questions. `methods` are the names of the rows, those
    of `arms` if given; without arms there are no further analyses. `quadrants` are those of
    the deficits, by default the installed ones; `analyses` names the analyses to run, by
    default all; `tariffs` are the prices for comparison, by default the newest.
    """
    ordered = sorted(rows, key=lambda row: (str(row["method"]), str(row["id"])))
    by_method = {name: [row for row in ordered if row["method"] == name] for name in methods}
    figures = {name: method_summary(found, n=n, seed=seed, deficits=deficits) for name, found in by_method.items()}
    whole = {"dataset": dataset, "mode": mode, "n": n, "seed": seed, "methods": figures}
    if arms:
        known = dict.fromkeys(deficits) | (_quadrants() if quadrants is None else dict(quadrants))
        material = Material(arms=tuple(arms), rows=by_method, n=n, seed=seed, quadrants=known, tariffs=tariffs)
        whole |= _analysed(material, figures, analyses)
    return whole


def _quadrants() -> dict[str, Quadrant | None]:
    return {deficit.name: deficit.quadrant for deficit in discover_deficits()}


def _analysed(
    material: Material, figures: Mapping[str, dict[str, Any]], wanted: Sequence[str] | None
) -> dict[str, Any]:
    """Add the analyses of each arm to its figures; return those of the run as a whole."""
    for arm in material.arms:
        if arm.method.quotes:
            figures[arm.name].update(_supporting_facts(material.rows[arm.name], material.n, material.seed))
    across = {}
    for analysis in discover_analyses():
        if wanted is not None and analysis.name not in wanted:
            continue
        measured = analysis.measure(material)
        if analysis.across:
            across.update({analysis.name: measured} if measured else {})
            continue
        for name, found in measured.items():
            figures[name][analysis.name] = found
    return across


def method_summary(rows: Sequence[Row], *, n: int, seed: int, deficits: Sequence[str]) -> dict[str, Any]:
    """The figures of one method; `rows` are its questions in any order."""
    rows = sorted(rows, key=lambda row: str(row["id"]))
    answered = [row for row in rows if row["error"] is None]
    missing = [0.0] * (n - len(answered))
    values = {score: [100.0 * row[score] for row in answered] + missing for score in SCORES}
    fired = [row for row in answered if row["fired"]]
    return {
        "n": n,
        "answered": len(answered),
        "errors": len(rows) - len(answered),
        **{score: round(math.fsum(values[score]) / n, 2) for score in SCORES},
        **{f"{score}_ci95": _interval(values[score], seed) for score in SCORES},
        "latency_s": _latency(rows, answered),
        "llm_calls": sum(row["llm_calls"] for row in rows),
        "tokens": {
            kind: sum(row["tokens"].get(kind, 0) for row in rows)
            for kind in (*_TOKENS, *(["reasoning"] if any("reasoning" in row["tokens"] for row in rows) else []))
        },
        "cost_usd": _cost(rows),
        "rounds_mean": round(sum(len(row["rounds"]) for row in answered) / len(answered), 3) if answered else None,
        "trigger_rate": round(len(fired) / len(answered), 4) if answered else None,
        "trigger_rate_ci95": _interval([float(row["fired"]) for row in answered], seed, 4) if answered else None,
        "stop_reasons": dict(sorted(Counter(row["stop_reason"] for row in answered).items())),
        "deficits": {name: _diagnosed(answered, name) for name in deficits},
        "fixed": sum(_first(row) < 1.0 <= row["em"] for row in fired),
        "broken": sum(row["em"] < 1.0 <= _first(row) for row in fired),
        "evidence_recall": _recall(answered, "evidence_recall"),
        "answer_recall": _recall(answered, "answer_recall"),
        "suspect_passages": sum(len(row["suspect"]) for row in answered),
        "shortened_passages": _packed(answered, "shortened_ids"),
        "left_out_passages": _packed(answered, "left_out_ids"),
        "notes": dict(sorted(Counter(note for row in answered for note in row.get("notes", ())).items())),
        **_served(answered),
        **_judged(rows, n, seed),
    }


def _served(rows: Sequence[Row]) -> dict[str, Any]:
    """Calls by model, and replies cut at their limit by stage, if the rows state them."""
    calls = [call for row in rows for call in row.get("usage", ()) if "model" in call]
    if not calls:
        return {}
    return {
        "models": dict(sorted(Counter(call["model"] for call in calls).items())),
        "cut_replies": dict(sorted(Counter(call["stage"] for call in calls if call["cut"]).items())),
    }


def _latency(rows: Sequence[Row], answered: Sequence[Row]) -> dict[str, Any]:
    """Percentiles in seconds, over answers with no call served by the response cache, if the rows state this.

    This way a resumed run keeps its latencies: only questions in progress at the interruption have none.
    """
    latencies = [row["latency_s"] for row in answered if row.get("timed", True)]
    return {
        **(_rounded(percentiles(latencies)) if latencies else dict.fromkeys(_CURVE)),
        "cached_calls": sum(row["cached_calls"] for row in rows),  # served instantly by the response cache
        **({"timed": len(latencies)} if any("timed" in row for row in answered) else {}),
    }


def _interval(values: Sequence[float], seed: int, digits: int = 2) -> list[float]:
    low, high = bootstrap_ci(values, seed=seed)
    return [round(low, digits), round(high, digits)]


def _rounded(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


def _cost(rows: Sequence[Row]) -> float | None:
    """Price of all calls in USD, including those served by the response cache; `None` if any price is unknown."""
    costs = [row["cost_usd"] for row in rows]
    if not costs or any(cost is None for cost in costs):
        return None
    return float(sum(Decimal(str(cost)) for cost in costs))


def _diagnosed(rows: Sequence[Row], deficit: str) -> int:
    """Repairs of a deficit, over all rounds."""
    plans = [round_["plan"] for row in rows for round_ in row["rounds"] if round_["plan"] is not None]
    return sum(plan["deficit"] == deficit for plan in plans)


def _recall(rows: Sequence[Row], of_what: str) -> list[dict[str, float]]:
    """For each round, over the questions that reached it: what was still present after each stage, in percent."""
    depth = max((len(row["rounds"]) for row in rows), default=0)
    reached = [
        [row["rounds"][index].get(of_what) for row in rows if len(row["rounds"]) > index] for index in range(depth)
    ]
    return [
        {"round": index, "n": len(known)}
        | {stage: round(100.0 * math.fsum(one[stage] for one in known) / len(known), 2) for stage in STAGES}
        for index, known in enumerate([one for one in found if one is not None] for found in reached)
        if known
    ]


def _packed(rows: Sequence[Row], which: str) -> int:
    """Passages that the last prompts shortened or left out."""
    return sum(len(row["rounds"][-1]["packing"][which]) for row in rows if row["rounds"])


def _judged(rows: Sequence[Row], n: int, seed: int) -> dict[str, Any]:
    """The judge's figure in percent, if a judge was used.

    Answers for which its call failed are counted as missing; `judged` are all other questions. Among these, a
    question that failed or was not reached counts as incorrect and needs no verdict.
    """
    asked = [row["judge"] for row in rows if row["error"] is None and "judge" in row]
    if not asked:
        return {}
    verdicts = [100.0 * verdict for verdict in asked if verdict is not None]
    values = verdicts + [0.0] * (n - len(asked))
    return {
        "judge": round(math.fsum(values) / len(values), 2) if values else None,
        "judge_ci95": _interval(values, seed) if values else None,
        "judged": len(values),
        "judge_missing": len(asked) - len(verdicts),
    }


def _supporting_facts(rows: Sequence[Row], n: int, seed: int) -> dict[str, Any]:
    """Official scores of supporting facts and joint scores, in percent over the questions that have such facts.

    A failed question scores 0. Empty if the data set labels no sentences.
    """
    unlabelled = sum(not row.get("supporting_facts_gold") for row in rows)
    labelled = n - unlabelled
    found: dict[str, Any] = {}
    for part in ("support", "joint"):
        scores = [row[part] for row in rows if row.get(part) is not None]
        if not scores:
            continue
        missing = [0.0] * (labelled - len(scores))
        values = {name: [100.0 * one[name] for one in scores] + missing for name in SCORES}
        found[part] = {
            "n": labelled,
            **{name: round(math.fsum(values[name]) / labelled, 2) for name in SCORES},
            **{f"{name}_ci95": _interval(values[name], seed) for name in SCORES},
        }
    return found


def _first(row: Row) -> float:
    return float(row["rounds"][0]["em"])
