"""Compare two sides on the questions that both answered: how large the difference is, and whether it is significant.

Everything is B minus A, in percent, over pairs. A pair in which a side failed says nothing about the answers, so it is
left out unless failures are to be counted; they then score 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics import paired
from meta_agent_rag.statistics.paired import (
    Difference,
    Verdict,
    bootstrap_ci,
    mcnemar_exact,
    paired_difference,
    permutation_p,
)
from meta_agent_rag.wording import counted

from ..metrics import Score
from .sides import Scored, Side

Pair = tuple[Scored, Scored]
SCORES = tuple(field.name for field in fields(Score))


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean with its 95 % interval, in percent."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ScoreFigures:
    """One score of both sides, and B minus A over pairs."""

    a: Mean
    b: Mean
    difference: Difference


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a set of pairs.

    The four counts are of exact matches; `mcnemar_p` compares the middle two, and `permutation_p` tests F1.
    `wins`, `losses` and `ties` are B's by F1 (by EM if F1 is equal).
    """

    n: int
    scores: Mapping[str, ScoreFigures]
    both_right: int
    only_a_right: int
    only_b_right: int
    neither_right: int
    mcnemar_p: float
    permutation_p: float
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two sides, paired. `alone_a` and `failed_a` count A's questions that B lacks, and A's failures among the shared.

    `failures_counted` says whether pairs with a failure are part of the figures.

    `differing` lists the aspects in which the protocols differ, as (aspect, A's, B's); `unlike_golds` counts pairs
    that were scored against different gold answers.
    """

    a: Side
    b: Side
    figures: Figures
    by_type: Mapping[str, Figures]
    by_hops: Mapping[str, Figures]
    won: tuple[Pair, ...]
    lost: tuple[Pair, ...]
    alone_a: int
    alone_b: int
    failed_a: int
    failed_b: int
    failures_counted: bool
    differing: tuple[tuple[str, str, str], ...]
    unlike_golds: int


def compare(a: Side, b: Side, *, seed: int = 42, count_failures: bool = False) -> Comparison:
    """Pair two sides by question and compare them.

    Raises `InputError` for different data sets, for sides without a common question that both answered, and if one
    id refers to two questions.
    """
    if a.dataset != b.dataset:
        raise InputError(
            f"A is from the data set {a.dataset!r} and B from {b.dataset!r}; "
            "only answers to the same questions can be compared."
        )
    shared = _paired(a, b)
    answered = [pair for pair in shared if all(one.prediction is not None for one in pair)]
    pairs = shared if count_failures else answered
    if not pairs:
        raise InputError(
            f"None of the {counted(len(shared), 'shared question')} was answered by both sides; continue the run with "
            "--resume RUN --retry-failed, or count failures as 0 with --count-failures."
        )
    return Comparison(
        a=a,
        b=b,
        figures=figures(pairs, seed=seed),
        by_type=_grouped(pairs, lambda one: one.type, seed),
        by_hops=_grouped(pairs, lambda one: None if one.hops is None else str(one.hops), seed),
        won=_moved(pairs, 1),
        lost=_moved(pairs, -1),
        alone_a=len(a.answers) - len(shared),
        alone_b=len(b.answers) - len(shared),
        failed_a=sum(one.prediction is None for one, _ in shared),
        failed_b=sum(other.prediction is None for _, other in shared),
        failures_counted=count_failures,
        differing=differing(a.protocol, b.protocol),
        unlike_golds=sum(set(one.golds) != set(other.golds) for one, other in pairs),
    )


def _paired(a: Side, b: Side) -> list[Pair]:
    pairs = [(a.answers[id_], b.answers[id_]) for id_ in sorted(a.answers.keys() & b.answers.keys())]
    if not pairs:
        raise InputError(
            f"A ({counted(len(a.answers), 'question')}) and B ({len(b.answers)}) have no question in common; "
            "compare runs over the same questions, with the same --seed and --n."
        )
    for one, other in pairs:
        if one.question != other.question:
            raise InputError(
                f"The id {one.id!r} names different questions in A and B; compare runs over the same data."
            )
    return pairs


def figures(pairs: Sequence[Pair], *, seed: int = 42) -> Figures:
    """The figures of one or more pairs."""
    values = {
        name: ([_percent(one, name) for one, _ in pairs], [_percent(b, name) for _, b in pairs]) for name in SCORES
    }
    right = [(one.score.em >= 1.0, other.score.em >= 1.0) for one, other in pairs]
    outcomes = [_outcome(pair) for pair in pairs]
    only_a, only_b = right.count((True, False)), right.count((False, True))
    return Figures(
        n=len(pairs),
        scores={
            name: ScoreFigures(
                a=_mean(ours, seed), b=_mean(theirs, seed), difference=paired_difference(ours, theirs, seed=seed)
            )
            for name, (ours, theirs) in values.items()
        },
        both_right=right.count((True, True)),
        only_a_right=only_a,
        only_b_right=only_b,
        neither_right=right.count((False, False)),
        mcnemar_p=mcnemar_exact(only_a, only_b),
        permutation_p=permutation_p(*values["f1"], seed=seed),
        wins=outcomes.count(1),
        losses=outcomes.count(-1),
        ties=outcomes.count(0),
    )


def verdict(found: Figures) -> Verdict:
    """Does B have more F1 than A, or less?"""
    return paired.verdict(found.scores["f1"].difference, found.permutation_p)


def differing(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """The aspects in which two protocols differ, in order; aspects that a side does not state are marked."""
    aspects = dict.fromkeys((*a, *b))
    return tuple(
        (aspect, a.get(aspect, "not stated"), b.get(aspect, "not stated"))
        for aspect in aspects
        if a.get(aspect) != b.get(aspect)
    )


def _percent(answer: Scored, score: str) -> float:
    return 100.0 * float(getattr(answer.score, score))


def _mean(values: Sequence[float], seed: int) -> Mean:
    low, high = bootstrap_ci(values, seed=seed)
    return Mean(mean=sum(values) / len(values), low=low, high=high)


def _outcome(pair: Pair) -> int:
    a, b = ((one.score.f1, one.score.em) for one in pair)
    return (b > a) - (b < a)


def _gain(pair: Pair) -> tuple[float, float]:
    one, other = pair
    return abs(other.score.em - one.score.em), abs(other.score.f1 - one.score.f1)


def _moved(pairs: Sequence[Pair], outcome: int) -> tuple[Pair, ...]:
    """The pairs with that outcome, largest change first."""
    return tuple(sorted((pair for pair in pairs if _outcome(pair) == outcome), key=_gain, reverse=True))


def _grouped(pairs: Sequence[Pair], group: Callable[[Scored], str | None], seed: int) -> Mapping[str, Figures]:
    """Figures by group, ordered by name; empty if no question states its group."""
    names = {one.id: group(one) or group(other) for one, other in pairs}
    known = sorted({name for name in names.values() if name is not None})
    return {name: figures([pair for pair in pairs if names[pair[0].id] == name], seed=seed) for name in known}
