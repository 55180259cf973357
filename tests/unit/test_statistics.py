"""Intervals, tests, discrimination and calibration: known values, determinism, and undefined inputs."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.statistics import (
    area_under_risk_coverage,
    auroc,
    binomial_interval,
    calibration_bins,
    cohen_kappa,
    risk_coverage,
)
from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics import Difference, mcnemar_exact, paired_difference, permutation_p


def test_a_paired_difference_by_hand() -> None:
    found = paired_difference([0.0, 100.0, 0.0, 50.0], [100.0, 100.0, 0.0, 0.0])
    assert found.mean == 12.5
    assert -50.0 <= found.low < found.mean < found.high <= 100.0
    assert paired_difference([3.0, 1.0], [5.0, 3.0]) == Difference(mean=2.0, low=2.0, high=2.0)


@pytest.mark.parametrize(
    ("only_one", "only_other", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (0, 6, 2 / 64), (6, 0, 2 / 64), (2, 4, 44 / 64), (3, 3, 1.0), (1, 9, 22 / 1024)],
)
def test_mcnemar_by_hand(only_one: int, only_other: int, p: float) -> None:
    assert mcnemar_exact(only_one, only_other) == pytest.approx(p)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_few_pairs_get_an_exact_permutation_test(differences: list[int]) -> None:
    observed = abs(sum(differences))
    patterns = list(product((1, -1), repeat=len(differences)))
    sums = (abs(sum(sign * one for sign, one in zip(signs, differences, strict=True))) for signs in patterns)
    expected = sum(total >= observed for total in sums) / len(patterns)
    assert permutation_p([0.0] * len(differences), differences) == pytest.approx(expected)


def test_auroc_by_hand() -> None:
    assert auroc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]) == pytest.approx(0.75)  # 3 of 4 pairs in order
    assert auroc([0.5, 0.5], [0, 1]) == pytest.approx(0.5)
    assert auroc([0.1, 0.4, 0.4, 0.9], [False, False, True, True]) == pytest.approx(3.5 / 4)
    assert auroc([0.2, 0.9], [1, 0]) == 0.0
    assert auroc([0.2, 0.9], [1, 1]) is None
    assert auroc([0.2], [0]) is None


def test_risk_and_coverage_by_hand() -> None:
    points = risk_coverage([0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    assert points == [(0.25, 0.0), (0.75, 1 / 3), (1.0, 0.5)]
    assert area_under_risk_coverage(points) == pytest.approx(0.5 / 3 + 0.25 * 0.5)
    plain = risk_coverage([0.9, 0.8, 0.7], [1, 0, 1])
    assert area_under_risk_coverage(plain) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)  # the mean of the risks
    assert risk_coverage([0.5, 0.5], [1, 0]) == [(1.0, 0.5)]


def test_the_exact_interval_of_a_proportion() -> None:
    assert list(binomial_interval(0, 100)) == pytest.approx([0.0, 1 - 0.025 ** (1 / 100)])
    low, high = binomial_interval(2, 10)  # a Clopper-Pearson case; tables give 0.0252 to 0.5561
    assert [low, high] == pytest.approx([0.0252, 0.5561], abs=1e-4)
    assert list(binomial_interval(8, 10)) == pytest.approx([1 - high, 1 - low])


def test_unpaired_input_and_other_labels_are_rejected() -> None:
    with pytest.raises(InputError, match="Labels"):
        auroc([0.1, 0.2], [0, 2])
    with pytest.raises(InputError, match=r"0\.\.1, but one is 1\.2"):
        calibration_bins([1.2], [1])
    with pytest.raises(InputError, match="2 and 1"):
        cohen_kappa(["a", "b"], ["a"])
    pairs: list[tuple[list[float], list[float]]] = [([], []), ([1.0], [1.0, 0.0]), ([float("nan")], [1.0])]
    for one, other in pairs:
        with pytest.raises(InputError):
            paired_difference(one, other)
