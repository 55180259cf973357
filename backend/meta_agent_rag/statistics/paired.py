"""Confidence intervals of means, and paired tests of two answers to the same questions.

All are order-independent, so that a resumed run reports the same as an uninterrupted one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import InputError

Verdict: TypeAlias = Literal["more", "less", "unknown"]
SIGNIFICANT = 0.05
DRAWS_IN_MEMORY = 4_000_000
"""The number of values in a batch of resamples: 32 MB, regardless of the number of questions."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A mean paired difference with its 95 % interval, in the unit of the values."""

    mean: float
    low: float
    high: float


def bootstrap_ci(values: Sequence[float], *, resamples: int = 2000, seed: int = 42) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean (Efron 1979), low and high, in the unit of `values`.

    The same values and seed give the same interval in any order, so that a
    resumed run reports the same as an uninterrupted one. If all values are equal, or there is only one,
    resampling has no effect: the interval is that value twice.

    Raises `InputError` if there are no values, and for values that are not finite.
    """
    import numpy as np
    from scipy.stats import bootstrap

    ordered = sorted(finite(values))
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    interval = bootstrap(
        (ordered,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, DRAWS_IN_MEMORY // len(ordered)),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def paired_difference(one: Sequence[float], other: Sequence[float], *, seed: int = 42) -> Difference:
    """The mean of `other` minus `one` over pairs, with the percentile bootstrap interval over pairs.

    Raises the errors of `bootstrap_ci`, and `InputError` for sequences of unequal length.
    """
    differences = _differences(one, other)
    low, high = bootstrap_ci(differences, seed=seed)
    return Difference(mean=math.fsum(differences) / len(differences), low=low, high=high)


def verdict(difference: Difference, p: float) -> Verdict:
    """Whether and in which direction a difference is significant: p is below 0.05 and the interval excludes 0."""
    if not p < SIGNIFICANT or difference.low <= 0.0 <= difference.high:
        return "unknown"
    return "more" if difference.mean > 0.0 else "less"


def mcnemar_exact(only_one: int, only_other: int) -> float:
    """The two-sided exact p of McNemar's test (McNemar 1947), from the counts that only one of two got right.

    Under the null hypothesis both are equally likely: a binomial test with 1/2; 1.0 without discordant pairs.
    """
    from scipy.stats import binomtest

    if only_one + only_other == 0:
        return 1.0
    return float(binomtest(only_one, only_one + only_other, 0.5).pvalue)


def permutation_p(one: Sequence[float], other: Sequence[float], *, seed: int = 42, resamples: int = 10000) -> float:
    """The two-sided p of the paired permutation test of a mean difference (Fisher 1935), by signs.

    Exact if the unequal pairs have at most `resamples` patterns of signs; otherwise sampled, and
    counted including the observed one, so that it is never 0 (Phipson & Smyth 2010).
    Symmetric in its arguments. Raises the errors of `paired_difference`.
    """
    import numpy as np
    from scipy.stats import permutation_test

    unequal = [difference for difference in _differences(one, other) if difference]
    total = math.fsum(unequal)
    if total == 0.0 or len(unequal) == 1:
        return 1.0  # every pattern of signs is as extreme
    tested = permutation_test(
        (np.array(sorted(math.copysign(1.0, total) * difference for difference in unequal)),),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, DRAWS_IN_MEMORY // len(unequal)),
        rng=np.random.default_rng(seed),
    )
    return float(tested.pvalue)


def require_pairs(one: Sequence[object], other: Sequence[object]) -> None:
    """Raise `InputError` for sequences of unequal length or without values."""
    if len(one) != len(other):
        raise InputError(
            f"Values must come in pairs, but there are {len(one)!r} and {len(other)!r}; leave out unpaired ones."
        )
    if len(one) == 0:
        raise InputError("There are no pairs to compare; omit the figure if nothing was answered.")


def _differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    require_pairs(one, other)
    return [second - first for first, second in zip(finite(one), finite(other), strict=True)]


def finite(values: Sequence[float]) -> list[float]:
    """The values as floats. Raises `InputError` if there are none, and for one that is not finite."""
    if len(values) == 0:
        raise InputError("There are no values to summarise; omit the figure if nothing was answered.")
    for value in values:
        if not math.isfinite(value):
            raise InputError(f"Every value must be a finite number, but one is {value!r}.")
    return [float(value) for value in values]
