"""Calls, prefix-cache hits and cost of two questions, counted by hand."""

from decimal import Decimal
from typing import Any

import pytest

from benchmarks.analyses.economy import ANALYSIS, apart, economy, following
from meta_agent_rag.llm.pricing import Tariff
from tests.benchmark_rows import arm, failed, material, once, round_of, row

TARIFFS = {
    "flash": Tariff(models=("f",), cache_hit=Decimal("0.003"), cache_miss=Decimal("0.15"), completion=Decimal("0.60")),
    "pro": Tariff(models=("p",), cache_hit=Decimal("0.022"), cache_miss=Decimal("0.66"), completion=Decimal("1.98")),
}
SHOWN: dict[str, list[str]] = {"packed_ids": ["a", "b"]}
FROM_MEMORY: dict[str, list[str]] = {"packed_ids": []}


def call(stage: str, tier: str, prompt: int | None, hit: int | None, completion: int | None, *, at: int = 0) -> Any:
    return {"stage": stage, "tier": tier, "round": at, "prompt": prompt, "cache_hit": hit, "completion": completion}


WRITE, SECOND = call("write", "flash", 1000, 0, 100), call("second_answer", "flash", 1200, 900, 50)
EVALUATE = call("evaluate", "pro", 1400, 1000, 60)
MEMORY = call("rewrite", "pro", 200, 64, 40, at=1)
FIRED = row(
    "fired",
    [round_of(0, "a", 0.0, packing=SHOWN), round_of(1, "b", 1.0, packing=FROM_MEMORY)],
    usage=[WRITE, SECOND, EVALUATE, MEMORY],
)
ONCE = row(
    "once",
    [round_of(0, "a", 1.0, packing=SHOWN)],
    usage=[WRITE, call("second_answer", "flash", 1000, 800, 50)],
)


def test_figures_are_means_per_question() -> None:
    found = economy([FIRED, ONCE], TARIFFS)
    assert (found["n"], found["calls"], found["prompt_tokens"], found["completion_tokens"]) == (2, 3.0, 2900.0, 200.0)
    assert found["calls_by_tier"] == {"flash": 2.0, "pro": 1.0}


def test_the_prefix_cache_share_excludes_first_calls_and_answers_from_memory() -> None:
    found = economy([FIRED, ONCE], TARIFFS)
    assert found["recorded"]["prefix_share"] == (900 + 1000 + 800) / (1200 + 1400 + 1000)
    # the critic is the first call to the pro tier
    assert found["own_cache"]["prefix_share"] == pytest.approx((900 + 800) / 3600, abs=1e-4)


def test_cost_is_stated_per_thousand_questions() -> None:
    found = economy([FIRED, ONCE], TARIFFS)
    flash = 1700 * 0.003 + 2500 * 0.15 + 300 * 0.60
    assert found["recorded"]["usd"] == pytest.approx((flash + 1064 * 0.022 + 536 * 0.66 + 100 * 1.98) / 2000, abs=1e-4)
    assert found["own_cache"]["usd"] == pytest.approx((flash + 64 * 0.022 + 1536 * 0.66 + 198) / 2000, abs=1e-4)


def test_a_probe_is_not_a_first_call() -> None:
    without_passages = [{**FIRED["rounds"][0], "packing": {"packed_ids": []}}, *FIRED["rounds"][1:]]
    probed = row("p", without_passages, usage=[call("write", "pro", 150, 100, 9), SECOND, EVALUATE])
    assert following(probed, probed["usage"]) == [EVALUATE]
    assert [one["cache_hit"] for one in apart(probed)] == [0, 0, 0]


def test_questions_with_unknown_token_counts_are_excluded() -> None:
    unreported = row("u", ONCE["rounds"], usage=[call("write", "flash", None, None, None)])
    found = ANALYSIS.measure(material([arm("metarag")], [FIRED, ONCE, failed("x"), unreported], n=4))
    assert found["metarag"]["n"] == 2
    assert ANALYSIS.measure(material([arm("metarag")], [once("old", 1.0), unreported], n=2)) == {}
