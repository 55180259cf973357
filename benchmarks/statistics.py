"""How sure a figure is, and how long answers take."""

import math
from collections.abc import Sequence

from meta_agent_rag.errors import InputError

_DRAWS_IN_MEMORY = 4_000_000
"""Numbers that a batch of resamples holds: 32 MB, whatever the number of questions."""


def bootstrap_ci(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 42
) -> tuple[float, float]:
    """Give the percentile bootstrap interval of the mean (Efron 1979), low and high, in the unit of `values`.

    The same values and seed give the same interval, in whatever order the values come, so that a
    resumed run reports what an unbroken one does. Where all values are equal, or there is only one,
    nothing can be resampled: the interval is that value twice.

    Raises `InputError` without values, for values that are not finite, for a confidence outside 0..1
    and for less than one resample.
    """
    import numpy as np
    from scipy.stats import bootstrap

    if not 0.0 < confidence < 1.0 or resamples < 1:
        raise InputError(f"Give a confidence in 0..1 and a resample or more, not {confidence!r} and {resamples!r}.")
    ordered = sorted(_finite(values))
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    interval = bootstrap(
        (ordered,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, _DRAWS_IN_MEMORY // len(ordered)),
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Give p50, p75, p90 and p99 in the unit of `seconds`, interpolated linearly between neighbours.

    Raises `InputError` without values and for values that are not finite.
    """
    import numpy as np

    ranks = (50, 75, 90, 99)
    return {f"p{rank}": float(value) for rank, value in zip(ranks, np.percentile(_finite(seconds), ranks), strict=True)}


def _finite(values: Sequence[float]) -> list[float]:
    if len(values) == 0:
        raise InputError("There are no values to summarise; leave the figure out where nothing was answered.")
    for value in values:
        if not math.isfinite(value):
            raise InputError(f"Every value must be a finite number, and one is {value!r}.")
    return [float(value) for value in values]
