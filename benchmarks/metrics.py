"""Scores of the official HotpotQA evaluation: of answers (`meta_agent_rag.statistics`) and supporting facts.

Every figure is a float in 0..1. Answers may be scored by a variant for other languages instead.

>>> score = scorer_named("multilingual")
>>> round(score("绍兴", ["浙江绍兴"]).f1, 2)
0.67
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence

from meta_agent_rag.discovery import named
from meta_agent_rag.statistics import (
    AnswerScore,
    Score,
    contains_answer,
    harmonic_mean,
    normalize_answer,
    score_answer,
)

__all__ = [
    "RIGHT",
    "SCORES",
    "AnswerScore",
    "Fact",
    "JointScore",
    "Score",
    "Scorer",
    "SupportScore",
    "contains_answer",
    "joint",
    "normalize_answer",
    "score_answer",
    "score_supporting_facts",
    "scorer_named",
]

SCORES = ("em", "f1", "precision", "recall")
RIGHT = 0.5
"""F1 from which an answer counts as correct: exact match rejects longer or shorter forms of the gold answer."""
Fact = tuple[str, int]
"""A supporting fact: the paragraph's title and the sentence's index from 0."""


class SupportScore(Score):
    """Scores of supporting facts, as sets."""


class JointScore(Score):
    """Joint scores of answer and supporting facts."""


def score_supporting_facts(predicted: Collection[Fact], gold: Collection[Fact]) -> SupportScore:
    """Score (title, sentence index) pairs as sets; two empty sets match exactly with F1 0, as officially."""
    said, meant = set(predicted), set(gold)
    shared = len(said & meant)
    precision = shared / len(said) if said else 0.0
    recall = shared / len(meant) if meant else 0.0
    return SupportScore(
        em=float(said == meant), f1=harmonic_mean(precision, recall), precision=precision, recall=recall
    )


def joint(answer: AnswerScore, support: SupportScore) -> JointScore:
    """Multiply EM, precision and recall of both; F1 is that of the products."""
    precision, recall = answer.precision * support.precision, answer.recall * support.recall
    return JointScore(
        em=answer.em * support.em, f1=harmonic_mean(precision, recall), precision=precision, recall=recall
    )


Scorer = Callable[[str, Sequence[str]], AnswerScore]
_UNSPACED = re.compile(r"([\u0e00-\u0e7f\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff])")
"""Characters of scripts that put no blanks between words: Chinese, Japanese and Thai."""


def _multilingual(prediction: str, golds: Sequence[str]) -> AnswerScore:
    """Score with every character of an unspaced script as a word, without punctuation of any script, as MLQA does."""
    return score_answer(_segmented(prediction), [_segmented(gold) for gold in golds])


def _segmented(text: str) -> str:
    plain = "".join(char for char in text if not unicodedata.category(char).startswith("P") or char.isascii())
    return _UNSPACED.sub(r" \1 ", plain)


_SCORERS: Mapping[str, Scorer] = {"official": score_answer, "multilingual": _multilingual}


def scorer_named(name: str) -> Scorer:
    """The scorer of answers of that name; raises `UnknownNameError`."""
    return named("scorer", name, _SCORERS)
