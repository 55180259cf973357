"""`summary.json`: the figures of a run by row of the table; the same rows in any order give the same bytes."""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from meta_agent_rag.discovery import calling
from meta_agent_rag.errors import MetaRagError
from meta_agent_rag.llm.pricing import Tariff
from meta_agent_rag.statistics import bootstrap_ci

from ..analyses import Material, discover_analyses
from ..analyses.analysis import Quadrant, Row
from ..metrics import SCORES
from ..run.arms import Arm
from ..statistics import binomial_interval, percentiles, score_interval
from .survival import STAGES

_LOG = logging.getLogger("meta_agent_rag.benchmarks")
CONVENTIONS = 2
"""How figures are rounded and which intervals they have; a record of an earlier number is replayed under that."""
FAILED = "failed_analyses"
"""The key of the analyses that failed, with the reason of each; absent if none did."""
_TOKENS = ("prompt", "cache_hit", "completion")
_CURVE = ("p50", "p75", "p90", "p99")


def summarise(
    rows: Sequence[Row],
    *,
    dataset: str,
    mode: str,
    arms: Sequence[Arm],
    n: int,
    seed: int,
    deficits: Mapping[str, Quadrant | None],
    analyses: Sequence[str] | None = None,
    tariffs: Mapping[str, Tariff] | None = None,
    conventions: int = CONVENTIONS,
) -> dict[str, Any]:
    """The summary of a run over `n` questions.

    Scores are percent over the answered questions, and null if none was answered; `errors` counts those that failed,
    and `unreached` those that the run did not get to. `deficits` are their quadrants by name; `analyses` names the
    analyses to run, by default all; `tariffs` are the prices for comparison, by default the newest. An analysis that
    fails is listed with its reason and costs no other figure.
    """
    ordered = sorted(rows, key=lambda row: (str(row["method"]), str(row["id"])))
    by_method = {arm.name: [row for row in ordered if row["method"] == arm.name] for arm in arms}
    means = _Means(seed=seed, conventions=conventions)
    figures = {
        arm.name: _method_summary(by_method[arm.name], n=n, deficits=sorted(deficits), means=means)
        | (_supporting_facts(by_method[arm.name], means) if arm.method.quotes else {})
        for arm in arms
    }
    whole: dict[str, Any] = {"dataset": dataset, "mode": mode, "n": n, "seed": seed, "methods": figures}
    quadrants = dict(sorted(deficits.items()))
    material = Material(arms=tuple(arms), rows=by_method, n=n, seed=seed, quadrants=quadrants, tariffs=tariffs)
    failed: dict[str, str] = {}
    for analysis in discover_analyses():
        if analyses is not None and analysis.name not in analyses:
            continue
        try:
            with calling("analysis", analysis.name, analysis.measure):
                measured = analysis.measure(material)
        except MetaRagError as error:
            _LOG.warning("The analysis %r is left out: %s", analysis.name, error)
            failed[analysis.name] = str(error)
            continue
        if analysis.across:
            whole |= {analysis.name: measured} if measured else {}
        else:
            for name, found in measured.items():
                figures[name][analysis.name] = found
    return whole | ({FAILED: failed} if failed else {})


def _method_summary(rows: Sequence[Row], *, n: int, deficits: Sequence[str], means: "_Means") -> dict[str, Any]:
    """The figures of one method; `rows` are its questions."""
    answered = [row for row in rows if row["error"] is None]
    fired = [(row["rounds"][0]["em"], row["em"]) for row in answered if row["fired"]]
    plans = Counter(round_["plan"]["deficit"] for row in answered for round_ in row["rounds"] if round_["plan"])
    packed = [row["rounds"][-1]["packing"] for row in answered if row["rounds"]]
    costs = [row["cost_usd"] for row in rows]
    known = costs and all(cost is not None for cost in costs)
    return {
        "n": n,
        "answered": len(answered),
        "errors": len(rows) - len(answered),
        **({"unreached": n - len(rows)} if means.conventions > 1 else {}),
        **means.scores(answered),
        "latency_s": _latency(rows, answered),
        "llm_calls": sum(row["llm_calls"] for row in rows),
        "tokens": _tokens(rows),
        # of all calls, including those served by the response cache; null if any price is unknown
        "cost_usd": float(sum(Decimal(str(cost)) for cost in costs)) if known else None,
        "rounds_mean": round(sum(len(row["rounds"]) for row in answered) / len(answered), 3) if answered else None,
        "trigger_rate": round(len(fired) / len(answered), 4) if answered else None,
        "trigger_rate_ci95": means.share([row["fired"] for row in answered]),
        "stop_reasons": dict(sorted(Counter(row["stop_reason"] for row in answered).items())),
        "deficits": {name: plans[name] for name in deficits},
        "fixed": sum(first < 1.0 <= last for first, last in fired),
        "broken": sum(last < 1.0 <= first for first, last in fired),
        "evidence_recall": _recall(answered, "evidence_recall"),
        "answer_recall": _recall(answered, "answer_recall"),
        "suspect_passages": sum(len(row["suspect"]) for row in answered),
        "shortened_passages": sum(len(packing["shortened_ids"]) for packing in packed),
        "left_out_passages": sum(len(packing["left_out_ids"]) for packing in packed),
        "notes": dict(sorted(Counter(note for row in answered for note in row.get("notes", ())).items())),
        **_served(answered),
        **_judged(answered, means),
    }


@dataclass(frozen=True, kw_only=True)
class _Means:
    """Means of scores in percent with their 95 % intervals.

    EM is a share of answers, whose interval is the exact one of Clopper and Pearson; the others have a bootstrap
    interval, and the exact one if all answers score 0 or all 100, of which a bootstrap tells nothing.
    """

    seed: int
    conventions: int

    def scores(self, answered: Sequence[Row]) -> dict[str, Any]:
        """Each score of these rows, then their intervals."""
        values = {score: [100.0 * row[score] for row in answered] for score in SCORES}
        return {
            **{score: self.mean(found) for score, found in values.items()},
            **{f"{score}_ci95": self.interval(found, exact=score == "em") for score, found in values.items()},
        }

    def mean(self, values: Sequence[float]) -> float | None:
        """The mean, rounded to what a reader may round once more."""
        return round(math.fsum(values) / len(values), self._digits) if values else None

    def interval(self, values: Sequence[float], *, exact: bool = False) -> list[float] | None:
        """The interval of the mean; `None` without values."""
        if not values:
            return None
        old = self.conventions == 1
        ends = bootstrap_ci(values, seed=self.seed) if old else score_interval(values, exact=exact, seed=self.seed)
        return [round(end, self._digits) for end in ends]

    def share(self, flags: Sequence[bool]) -> list[float] | None:
        """The interval of a share in 0..1."""
        if not flags:
            return None
        old = self.conventions == 1
        values = [float(flag) for flag in flags]
        ends = bootstrap_ci(values, seed=self.seed) if old else binomial_interval(sum(flags), len(flags))
        return [round(end, 4) for end in ends]

    @property
    def _digits(self) -> int:
        return 2 if self.conventions == 1 else 4


def _tokens(rows: Sequence[Row]) -> dict[str, int | None]:
    """Tokens by kind; null if the server reported those of no call."""
    kinds = (*_TOKENS, *(["reasoning"] if any("reasoning" in row["tokens"] for row in rows) else []))
    unmetered = sum(row.get("unmetered_calls", 0) for row in rows)
    sums = {kind: sum(row["tokens"].get(kind, 0) for row in rows) for kind in kinds}
    return dict.fromkeys(kinds) if unmetered and not any(sums.values()) else dict(sums)


def _served(rows: Sequence[Row]) -> dict[str, Any]:
    """Calls by requested and by answering model, and replies cut at their limit by stage, if the rows state them."""
    calls = [call for row in rows for call in row.get("usage", ()) if "model" in call]
    if not calls:
        return {}
    named = Counter(call["answered_by"] for call in calls if "answered_by" in call)
    return {
        **({"answered_by": dict(sorted(named.items()))} if named else {}),
        "models": dict(sorted(Counter(call["model"] for call in calls).items())),
        "cut_replies": dict(sorted(Counter(call["stage"] for call in calls if call["cut"]).items())),
    }


def _latency(rows: Sequence[Row], answered: Sequence[Row]) -> dict[str, Any]:
    """Percentiles in seconds of the time in which an answer was worked on, without waiting, and the mean wait.

    They are over answers with no call served by the response cache, if the rows state this: so a resumed run keeps its
    latencies, and only questions in progress at the interruption have none.
    """
    timed = [row for row in answered if row.get("timed", True)]
    working = [row["latency_s"] - row.get("waited_s", 0.0) for row in timed]
    waited = [row["waited_s"] for row in timed if "waited_s" in row]
    curve = {name: round(value, 4) for name, value in percentiles(working).items()} if timed else dict.fromkeys(_CURVE)
    return {
        **curve,
        "cached_calls": sum(row["cached_calls"] for row in rows),  # served instantly by the response cache
        **({"timed": len(timed)} if any("timed" in row for row in answered) else {}),
        **({"waiting_mean": round(math.fsum(waited) / len(waited), 4)} if waited else {}),
    }


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


def _judged(answered: Sequence[Row], means: _Means) -> dict[str, Any]:
    """The judge's figure in percent over the answers that have a verdict, if a judge was used."""
    asked = [row["judge"] for row in answered if "judge" in row]
    if not asked:
        return {}
    verdicts = [100.0 * verdict for verdict in asked if verdict is not None]
    return {
        "judge": means.mean(verdicts),
        "judge_ci95": means.interval(verdicts, exact=True),
        "judged": len(verdicts),
        "judge_missing": len(asked) - len(verdicts),
    }


def _supporting_facts(rows: Sequence[Row], means: _Means) -> dict[str, Any]:
    """Official scores of supporting facts and joint scores, in percent; empty if the data set labels no sentences."""
    found = {part: [row[part] for row in rows if row.get(part) is not None] for part in ("support", "joint")}
    return {part: {"n": len(scores), **means.scores(scores)} for part, scores in found.items() if scores}
