"""The official scores of a short answer; every figure is a float in 0..1.

Source: `hotpot_evaluate_v1.py` of https://github.com/hotpotqa/hotpot (Yang et al., EMNLP 2018), which
the published figures of this field are computed with. The script scores against one gold answer; where
a data set has aliases, the best gold counts (see `score_answer`).

    >>> score_answer("the Eiffel Tower, Paris", ["Eiffel Tower"]).recall
    1.0
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InputError

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_VERDICTS = frozenset({"yes", "no", "noanswer"})


@dataclass(frozen=True, kw_only=True)
class Score:
    """Exact match, F1, precision and recall, each in 0..1."""

    em: float
    f1: float
    precision: float
    recall: float


class AnswerScore(Score):
    """Scores of a short answer, by tokens."""


def normalize_answer(text: str) -> str:
    """Lower-case, drop ASCII punctuation, then the articles a, an, the; single spaces between words."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def score_answer(prediction: str, golds: Sequence[str]) -> AnswerScore:
    """Score a prediction against the gold answer and its aliases.

    All four figures are for one gold: the one with the best (em, f1), or the first of equals. The 2Wiki
    script takes the maximum of each figure by itself; EM and F1 agree with it, precision and recall
    can be lower here. As in the official script, two texts that normalise to nothing match exactly
    (EM 1) and share no token (F1 0).

    Raises `InputError` without a gold, and for a bare string instead of a list.
    """
    if isinstance(golds, str) or not golds:
        raise InputError(f"Give a list of at least one gold answer, not {golds!r}.")
    return max((_score_one(prediction, gold) for gold in golds), key=lambda score: (score.em, score.f1))


def contains_answer(prediction: str, golds: Sequence[str]) -> bool:
    """Whether the prediction contains a gold answer, or begins with it if that is yes or no, whatever else it says.

    Words are normalised as for `score_answer`. It counts right answers that are not as short as the gold answer.

    >>> contains_answer("Yes, both films are French.", ["yes"]), contains_answer("He was born in Oslo.", ["Oslo"])
    (True, True)
    """
    said = f" {normalize_answer(prediction)} "
    wanted = [normalize_answer(gold) for gold in golds]
    return any(
        said.startswith(f" {gold} ") if gold in {"yes", "no"} else f" {gold} " in said for gold in wanted if gold
    )


def _score_one(prediction: str, gold: str) -> AnswerScore:
    said, meant = normalize_answer(prediction), normalize_answer(gold)
    em = float(said == meant)
    words, gold_words = Counter(said.split()), Counter(meant.split())
    shared = (words & gold_words).total()
    if not shared or (said != meant and not _VERDICTS.isdisjoint((said, meant))):
        return AnswerScore(em=em, f1=0.0, precision=0.0, recall=0.0)
    precision, recall = shared / words.total(), shared / gold_words.total()
    return AnswerScore(em=em, f1=harmonic_mean(precision, recall), precision=precision, recall=recall)


def harmonic_mean(precision: float, recall: float) -> float:
    """F1 of precision and recall, all in 0..1; 0 if both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
