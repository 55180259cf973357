"""Recorded answers: what a method did, without the question's own fields and without scores."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from meta_agent_rag.datasets import Question

from ..metrics import score_answer
from ..rows.samples import asked, supported

Row = Mapping[str, Any]
_SCORES = ("em", "f1", "precision", "recall")
_ASKED = ("question", "gold", "aliases", "type", "hops", "gold_facts", "supporting_facts_gold")
_TOLD = (*_ASKED, "support", "joint", *_SCORES)


def row_content(row: Row) -> dict[str, Any]:
    """A row of `samples.jsonl` for a record, without scores and the question's own fields."""
    kept = {name: value for name, value in row.items() if name not in _TOLD}
    return {**kept, "rounds": [without(round_, "em", "f1") for round_ in row["rounds"]]}


def scored(content: Row, question: Question, *, quotes: bool) -> dict[str, Any]:
    """The restored row of `samples.jsonl`, scored now; `quotes` says that the method's supporting facts are scored.

    Other measurements on the passages (`evidence_recall`, `answer_recall`) are as recorded.
    """
    head = {**asked(question, content["method"]), "prediction": content["prediction"]}
    facts = {"supporting_facts_gold": [list(fact) for fact in question.supporting_facts]}
    if content["error"] is not None:
        return {**head, **dict.fromkeys(_SCORES), **content, **facts, "support": None, "joint": None}
    score = score_answer(content["prediction"], question.golds)
    quoted = [(title, index) for title, index in content["supporting_facts"]] if quotes else None
    rounds = [{**round_, **_draft_scores(round_, question)} for round_ in content["rounds"]]
    return {**head, **asdict(score), **content, "rounds": rounds, **facts, **supported(question, score, quoted)}


def _draft_scores(round_: Row, question: Question) -> dict[str, float]:
    score = score_answer(round_["draft"]["short_answer"], question.golds)
    return {"em": score.em, "f1": score.f1}


def without(content: Row, *names: str) -> dict[str, Any]:
    """The content without some of its fields."""
    return {name: value for name, value in content.items() if name not in names}
