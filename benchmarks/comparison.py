"""A paired comparison of two sides, each a method of a run or a file of predictions, over the questions of both.

Everything is B minus A, in percent, over pairs. A pair in which a side failed says nothing about the answers, so it is
left out unless failures are to be counted; they then score 0.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from meta_agent_rag.datasets import LoadedQuestions
from meta_agent_rag.errors import InputError
from meta_agent_rag.statistics.paired import (
    Difference,
    Verdict,
    mcnemar_exact,
    paired_difference,
    permutation_p,
    verdict,
)
from meta_agent_rag.wording import counted

from .metrics import SCORES, AnswerScore, score_answer
from .predictions import imported
from .rows.past_run import PastRun, Row
from .statistics import score_interval

_APART = ("dataset", "methods", "data_file", "aliases_file", "judge")
"""Fields of an experiment that are compared, or that change no answer."""
_NOTHING = AnswerScore(em=0.0, f1=0.0, precision=0.0, recall=0.0)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A question with one side's answer; if it failed, `prediction` is `None` and the score 0."""

    id: str
    question: str
    golds: tuple[str, ...]
    type: str | None
    prediction: str | None
    score: AnswerScore


@dataclass(frozen=True, kw_only=True)
class Side:
    """Answers by question id, under a name; `protocol` describes by aspect, in words, how they were produced.

    `unknown` counts predictions for questions that the data set does not have.
    """

    name: str
    source: str
    dataset: str
    answers: Mapping[str, Scored]
    protocol: Mapping[str, str]
    unknown: int = 0


def run_side(run: PastRun, method: str | None) -> Side:
    """A method of a run; without a name, the run's only method. Raises `InputError` if it has several, or lacks it."""
    from .run.provenance import conditions  # imported here, so that --help is quick

    if method is None:
        if len(run.methods) > 1:
            raise InputError(
                f"The run {run.name!r} has several methods ({', '.join(run.methods)}); "
                "name one of them with --method-a or --method-b."
            )
        method = next(iter(run.methods))
    rows = run.rows(method)
    models = {call["model"] for row in rows for call in row.get("usage", ()) if "model" in call}
    chosen = {name: value for name, value in run.config["experiment"].items() if name not in _APART}
    stated = {**chosen, "commit": run.config.get("commit"), "models of the calls": sorted(models)}
    return Side(
        name=method,
        source=f"run {run.name}",
        dataset=run.dataset,
        answers={row["id"]: _scored(row) for row in rows},
        protocol={name: _words(value) for name, value in (stated | conditions(run.config)).items()},
    )


def _words(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scored(row: Row) -> Scored:
    failed = row["error"] is not None
    return Scored(
        id=row["id"],
        question=row["question"],
        golds=tuple(dict.fromkeys((row["gold"], *row.get("aliases", ())))),
        type=row.get("type"),
        prediction=None if failed else row["prediction"],
        score=_NOTHING if failed else AnswerScore(**{name: row[name] for name in SCORES}),
    )


def file_side(path: Path, loaded: LoadedQuestions, dataset: str) -> Side:
    """The predictions of a file that `import` reads, scored now; a null prediction counts as failed."""
    read = imported(path, loaded.questions, name=path.name)
    answers = {}
    for question in loaded.questions:
        if question.id in read.predictions:
            text = read.predictions[question.id].text
            answers[question.id] = Scored(
                id=question.id,
                question=question.text,
                golds=question.golds,
                type=question.type,
                prediction=text,
                score=_NOTHING if text is None else score_answer(text, question.golds),
            )
    protocol = {"data": _words([loaded.sha256, loaded.aliases_sha256])}
    return Side(
        name=path.name, source=str(path), dataset=dataset, answers=answers, protocol=protocol, unknown=read.unknown
    )


Pair = tuple[Scored, Scored]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a set of pairs; `scores` has for each score the means of `a`, `b` and the `difference`.

    The four counts are of exact matches; `mcnemar_p` compares the middle two, and `permutation_p` tests F1.
    `wins`, `losses` and `ties` are B's by F1 (by EM if F1 is equal).
    """

    n: int
    scores: Mapping[str, Mapping[str, Difference]]
    both_right: int
    only_a_right: int
    only_b_right: int
    neither_right: int
    mcnemar_p: float
    permutation_p: float
    wins: int
    losses: int
    ties: int

    @property
    def verdict(self) -> Verdict:
        """Whether B has significantly more F1 than A, or less."""
        return verdict(self.scores["f1"]["difference"], self.permutation_p)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two sides, paired. `alone_a` and `failed_a` count A's questions that B lacks, and A's failures among the shared.

    `failures_counted` says whether pairs with a failure are part of the figures. `differing` lists the aspects in which
    the protocols differ, as (aspect, A's, B's).
    """

    a: Side
    b: Side
    figures: Figures
    by_type: Mapping[str, Figures]
    won: tuple[Pair, ...]
    lost: tuple[Pair, ...]
    alone_a: int
    alone_b: int
    failed_a: int
    failed_b: int
    failures_counted: bool
    differing: tuple[tuple[str, str, str], ...]


def compare(a: Side, b: Side, *, count_failures: bool = False) -> Comparison:
    """Pair two sides by question and compare them.

    Raises `InputError` for different data sets, for sides without a common question that both answered, and if one
    id refers to two questions.
    """
    if a.dataset != b.dataset:
        raise InputError(
            f"A is from the data set {a.dataset!r} and B from {b.dataset!r}; "
            "only answers to the same questions can be compared."
        )
    shared = [(a.answers[id_], b.answers[id_]) for id_ in sorted(a.answers.keys() & b.answers.keys())]
    if not shared:
        raise InputError(
            f"A ({counted(len(a.answers), 'question')}) and B ({len(b.answers)}) have no question in common; "
            "compare runs over the same questions, with the same --seed and --n."
        )
    for one, other in shared:
        if one.question != other.question:
            raise InputError(
                f"The id {one.id!r} names different questions in A and B; compare runs over the same data."
            )
    pairs = [pair for pair in shared if count_failures or all(one.prediction is not None for one in pair)]
    if not pairs:
        raise InputError(
            f"None of the {counted(len(shared), 'shared question')} was answered by both sides; continue the run with "
            "--resume RUN --retry-failed, or count failures as 0 with --count-failures."
        )
    aspects = dict.fromkeys((*a.protocol, *b.protocol))
    stated = [(name, *(side.protocol.get(name, "not stated") for side in (a, b))) for name in aspects]
    ranked = sorted(pairs, key=_change, reverse=True)
    return Comparison(
        a=a,
        b=b,
        figures=figures(pairs),
        by_type=_by_type(pairs),
        won=tuple(pair for pair in ranked if _outcome(pair) > 0),
        lost=tuple(pair for pair in ranked if _outcome(pair) < 0),
        alone_a=len(a.answers) - len(shared),
        alone_b=len(b.answers) - len(shared),
        failed_a=sum(one.prediction is None for one, _ in shared),
        failed_b=sum(other.prediction is None for _, other in shared),
        failures_counted=count_failures,
        differing=tuple((name, ours, theirs) for name, ours, theirs in stated if ours != theirs),
    )


def figures(pairs: Sequence[Pair]) -> Figures:
    """The figures of one or more pairs."""
    scores: dict[str, dict[str, Difference]] = {}
    for name in SCORES:
        ours, theirs = ([100.0 * float(getattr(one.score, name)) for one in side] for side in zip(*pairs, strict=True))
        means = {side: _mean(values, exact=name == "em") for side, values in (("a", ours), ("b", theirs))}
        scores[name] = {**means, "difference": paired_difference(ours, theirs)}
        if name == "f1":
            p = permutation_p(ours, theirs)
    right = Counter((one.score.em >= 1.0, other.score.em >= 1.0) for one, other in pairs)
    outcomes = Counter(map(_outcome, pairs))
    return Figures(
        n=len(pairs),
        scores=scores,
        both_right=right[True, True],
        only_a_right=right[True, False],
        only_b_right=right[False, True],
        neither_right=right[False, False],
        mcnemar_p=mcnemar_exact(right[True, False], right[False, True]),
        permutation_p=p,
        wins=outcomes[1],
        losses=outcomes[-1],
        ties=outcomes[0],
    )


def as_object(found: Comparison) -> dict[str, Any]:
    """The comparison as one JSON object; figures in percent, `difference` is B minus A."""
    whole = asdict(found)
    for letter in "ab":
        side = whole.pop(letter)
        kept = {name: side[name] for name in ("name", "source", "unknown")}
        numbers = {name: whole.pop(f"{name}_{letter}") for name in ("alone", "failed")}
        whole[letter] = {**kept, "answers": len(side["answers"]), **numbers}
    for name in ("won", "lost"):
        whole[name] = [{"id": a["id"], "question": a["question"], "a": a, "b": b} for a, b in whole[name]]
    return {"verdict": found.figures.verdict, "dataset": found.a.dataset, **whole.pop("figures"), **whole}


def _mean(values: Sequence[float], *, exact: bool) -> Difference:
    low, high = score_interval(values, exact=exact)
    return Difference(mean=sum(values) / len(values), low=low, high=high)


def _outcome(pair: Pair) -> int:
    a, b = ((one.score.f1, one.score.em) for one in pair)
    return (b > a) - (b < a)


def _change(pair: Pair) -> tuple[float, float]:
    one, other = pair
    return abs(other.score.em - one.score.em), abs(other.score.f1 - one.score.f1)


def _by_type(pairs: Sequence[Pair]) -> Mapping[str, Figures]:
    """Figures by question type, ordered by name; empty if no question states its type."""
    types = {one.id: one.type or other.type for one, other in pairs}
    known = sorted({name for name in types.values() if name is not None})
    return {name: figures([pair for pair in pairs if types[pair[0].id] == name]) for name in known}
