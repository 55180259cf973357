"""Scores of the official HotpotQA evaluation: of answers (`meta_agent_rag.statistics.scores`) and supporting facts.

Every figure is a float in 0..1.
"""

from collections.abc import Collection

from meta_agent_rag.statistics.scores import (
    AnswerScore,
    Score,
    contains_answer,
    harmonic_mean,
    normalize_answer,
    score_answer,
)

__all__ = [
    "SCORES",
    "AnswerScore",
    "Fact",
    "JointScore",
    "Score",
    "SupportScore",
    "contains_answer",
    "joint",
    "normalize_answer",
    "score_answer",
    "score_supporting_facts",
]

SCORES = ("em", "f1", "precision", "recall")
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
