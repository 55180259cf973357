"""Intervals and percentiles: known values, determinism, and inputs that have none."""

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.statistics import bootstrap_ci, percentiles
from meta_agent_rag.errors import InputError


def test_the_interval_is_that_of_the_binomial() -> None:
    """For 500 answers, half of them right, the normal approximation gives 50 +- 4.38 points."""
    low, high = bootstrap_ci([100.0, 0.0] * 250, seed=7)
    assert low == pytest.approx(50 - 4.38, abs=0.8)
    assert high == pytest.approx(50 + 4.38, abs=0.8)


def test_the_same_seed_gives_the_same_interval_in_any_order() -> None:
    values = [float(n % 7) for n in range(60)]
    assert bootstrap_ci(values, seed=3) == bootstrap_ci(values[::-1], seed=3)
    assert bootstrap_ci(values, seed=3) != bootstrap_ci(values, seed=4)


def test_more_confidence_is_wider() -> None:
    values = [float(n) for n in range(40)]
    narrow, wide = bootstrap_ci(values, confidence=0.8), bootstrap_ci(values, confidence=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize("values", [[0.3], [0.3] * 9, [0.0], [100.0, 100.0]])
def test_nothing_to_resample(values: list[float]) -> None:
    assert bootstrap_ci(values) == (values[0], values[0])


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_the_interval_lies_within_the_values(values: list[float], seed: int) -> None:
    low, high = bootstrap_ci(values, resamples=50, seed=seed)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_percentiles_by_hand() -> None:
    assert percentiles([4.0, 1.0, 3.0, 2.0, 5.0]) == pytest.approx({"p50": 3.0, "p75": 4.0, "p90": 4.6, "p99": 4.96})
    assert percentiles([2.5]) == {"p50": 2.5, "p75": 2.5, "p90": 2.5, "p99": 2.5}


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_no_figure_from_nothing(values: list[float]) -> None:
    with pytest.raises(InputError):
        bootstrap_ci(values)
    with pytest.raises(InputError):
        percentiles(values)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence"):
        bootstrap_ci([1.0, 2.0], confidence=confidence)


def test_at_least_one_resample() -> None:
    with pytest.raises(InputError, match="resample"):
        bootstrap_ci([1.0, 2.0], resamples=0)


def test_the_module_loads_nothing_heavy() -> None:
    code = "import sys, benchmarks.statistics; sys.exit(bool({'numpy', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
