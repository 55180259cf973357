"""The summary's counts: scores over what was answered, failures apart, answers fixed and broken by repairs."""

import json
import random
from typing import Any

import pytest

from benchmarks.rows.summary import summarise
from tests.benchmark_rows import QUADRANTS, arm, failed, once, round_of
from tests.benchmark_rows import row as sample


def row(identity: str, first: float, last: float, *, fired: bool = True, **fields: Any) -> dict[str, Any]:
    """A row of two rounds if it fired, of one if it did not."""
    packing = {"packed_ids": [], "shortened_ids": [], "left_out_ids": ["p"]}
    drafts = [round_of(0, "a", first, packing=packing)]
    if fired:
        drafts.append(round_of(1, "b", last, deficit="reasoning_error", packing=packing))
    return sample(identity, drafts, **fields)


def run(rows: list[dict[str, Any]], *methods: str, n: int) -> dict[str, Any]:
    """The whole summary, analyses included."""
    arms = [arm(name) for name in methods]
    return summarise(rows, dataset="d", mode="gold", n=n, seed=1, arms=arms, deficits=QUADRANTS)


def summary(rows: list[dict[str, Any]], n: int) -> dict[str, Any]:
    """The one method's figures."""
    figures: dict[str, Any] = run(rows, "metarag", n=n)["methods"]["metarag"]
    return figures


def test_counts_by_hand() -> None:
    rows = [
        row("fixed", 0.0, 1.0),
        row("broken", 1.0, 0.0),
        row("still wrong", 0.0, 0.0),
        row("right at once", 1.0, 1.0, fired=False, stop_reason="satisfied"),
        failed("failed"),
    ]
    figures = summary(rows, n=6)
    assert [figures[name] for name in ("n", "answered", "errors", "unreached")] == [6, 4, 1, 1]
    assert figures["em"] == 50.0, "neither a failure nor a question that was not reached is an answer"
    assert (figures["fixed"], figures["broken"]) == (1, 1)
    assert figures["trigger_rate"] == 0.75
    assert figures["deficits"] == dict.fromkeys(sorted(QUADRANTS), 0) | {"reasoning_error": 3}
    assert figures["stop_reasons"] == {"max_rounds": 3, "satisfied": 1}
    assert figures["llm_calls"] == 20
    assert figures["cost_usd"] == pytest.approx(0.005)
    assert figures["rounds_mean"] == 1.75
    assert figures["left_out_passages"] == 4
    low, high = figures["em_ci95"]
    assert 0 <= low <= figures["em"] <= high <= 100


def test_the_judge_covers_the_answers_that_have_a_verdict() -> None:
    rows = [once("a", 1.0, judge=1.0), once("b", 0.0, judge=0.0), once("c", 1.0, judge=None), failed("d")]
    found = summary(rows, 4)
    assert (found["judge"], found["judged"], found["judge_missing"]) == (50.0, 2, 1)
    low, high = found["judge_ci95"]
    assert 0 <= low <= found["judge"] <= high <= 100


def test_a_resumed_run_produces_an_identical_summary() -> None:
    dice = random.Random(3)
    rows = [
        sample(
            f"q{place}",
            [round_of(0, "x", float(dice.random() < 0.5)), round_of(1, "y", dice.random(), deficit="external_only")],
            method=name,
            f1=dice.random(),
            precision=dice.random() / 3,
            latency_s=dice.random(),
        )
        for name in ("metarag", "standard_rag")
        for place in range(30)
    ]
    written = json.dumps(run(rows, "metarag", "standard_rag", n=31))
    shuffled = json.loads(json.dumps(rows))
    dice.shuffle(shuffled)
    assert json.dumps(run(shuffled, "metarag", "standard_rag", n=31)) == written


def test_latencies_exclude_answers_shortened_by_the_cache() -> None:
    own = [row(str(number), 0.0, 1.0, latency_s=float(number), timed=True) for number in range(1, 4)]
    shortened = row("resumed", 0.0, 1.0, latency_s=0.01, timed=False, cached_calls=3)
    latency = summary([*own, shortened], n=4)["latency_s"]
    assert (latency["p50"], latency["timed"], latency["cached_calls"]) == (2.0, 3, 3)
    none_left = summary([shortened], n=1)["latency_s"]
    assert (none_left["p50"], none_left["timed"]) == (None, 0)
    older = [{name: value for name, value in one.items() if name != "timed"} for one in (*own, shortened)]
    latency = summary(older, n=4)["latency_s"]
    assert (latency["p50"], latency["cached_calls"]) == (pytest.approx(1.5), 3)
    assert "timed" not in latency, "older rows lack the field, and their summaries stay identical"


def test_an_interval_is_never_without_width() -> None:
    figures = summary([row(str(number), 1.0, 1.0) for number in range(4)], n=4)
    assert figures["em_ci95"] == figures["f1_ci95"] == [39.7635, 100.0]
    assert figures["trigger_rate_ci95"] == [0.3976, 1.0]
    none = summary([row(str(number), 0.0, 0.0) for number in range(100)], n=100)
    assert none["em_ci95"] == [0.0, 3.6217]


def test_figures_are_rounded_once() -> None:
    figures = summary([row(str(number), 1.0, float(number < 7)) for number in range(13)], n=13)
    assert f"{figures['em']:.1f}" == "53.8", "not 53.9, by way of 53.85"


def test_tokens_that_no_call_reported_are_unknown() -> None:
    silent: dict[str, Any] = {"tokens": {"prompt": 0, "cache_hit": 0, "completion": 0}, "unmetered_calls": 4}
    tokens = summary([row("a", 0.0, 1.0, **silent)], n=1)["tokens"]
    assert tokens == {"prompt": None, "cache_hit": None, "completion": None}
