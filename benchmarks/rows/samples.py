"""A row of `samples.jsonl`: one method's answer to one question, with all its rounds, scored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from meta_agent_rag.agent.engine import Answer
from meta_agent_rag.agent.state import Round
from meta_agent_rag.datasets import Question
from meta_agent_rag.errors import InputError
from meta_agent_rag.llm.ledger import LedgerRow, Totals, lost_calls
from meta_agent_rag.llm.messages import CUT
from meta_agent_rag.settings import UnitFloat
from meta_agent_rag.wording import first_fault

from ..metrics import SCORES, AnswerScore, Scorer, SupportScore, joint, score_answer, score_supporting_facts
from .supporting_facts import Fact, supporting_facts
from .survival import answer_recall, evidence_recall

QUESTION_FIELDS = ("question", "gold", "aliases", "type", "hops", "gold_facts")


def sample_row(
    question: Question,
    method: str,
    answer: Answer,
    *,
    latency_s: float,
    waited_s: float | None = None,
    quotes: bool = True,
    scorer: Scorer = score_answer,
) -> dict[str, Any]:
    """The row of an answered question; scores are 0..1, money USD as text, time seconds.

    `support` and `joint` are the official scores of supporting facts and the joint scores, if the method quotes
    (`quotes`) and the data set labels sentences, else null. `timed` says that `latency_s` is a real latency, not
    shortened by the response cache; `waited_s` is the part of it in which no call was served: queueing, and tries that
    failed. If a judge is used, its verdict is added as `judge`: 1, 0, or null if the call failed. `usage` lists the
    method's calls in the order in which they ended, each with role, requested model, the model named in the reply, and
    tokens (null if the server did not report them); `cut` says that the reply reached its limit. `lost_calls`, if
    there are any, counts the calls that got no reply and were done without.
    """
    score = scorer(answer.short_answer, question.golds)
    lost = lost_calls(answer.calls)
    facts = supporting_facts(question, answer)
    return {
        **asked(question, method),
        "prediction": answer.short_answer,
        "answer": answer.text,
        **asdict(score),
        "stop_reason": answer.stop_reason,
        "fired": answer.fired,
        "chosen": answer.chosen,
        "rounds": [_round_row(round_, question, answer, scorer) for round_ in answer.rounds],
        "evidence": [found.passage.id for found in answer.evidence],
        "suspect": [found.passage.id for found in answer.evidence if found.suspect],
        "dropped": [{"passage_id": one.passage_id, "reason": one.reason} for one in answer.dropped],
        "supporting_facts": facts,
        "supporting_facts_gold": list(question.supporting_facts),
        **supported(question.supporting_facts, score, facts if quotes else None),
        "notes": list(answer.notes),
        **_spent(answer.totals, latency_s, waited_s),
        "usage": [_usage(call) for call in answer.calls],
        **({"lost_calls": lost} if lost else {}),
        "error": None,
    }


def failed_row(
    question: Question, method: str, error: Exception, spent: Totals, *, latency_s: float, waited_s: float | None = None
) -> dict[str, Any]:
    """The row of a question that could not be answered: counted and listed, with null instead of a score."""
    return {
        **asked(question, method),
        "prediction": None,
        **dict.fromkeys(SCORES),
        "rounds": [],
        "supporting_facts_gold": list(question.supporting_facts),
        "support": None,
        "joint": None,
        "notes": [],
        **_spent(spent, latency_s, waited_s),
        "error": f"{type(error).__name__}: {error}",
    }


def asked(question: Question, method: str) -> dict[str, Any]:
    """The question and the method: the first fields of every row."""
    return {
        "id": question.id,
        "method": method,
        "question": question.text,
        "gold": question.answer,
        "aliases": list(question.aliases),
        "type": question.type,
        "hops": question.hops,
        **({"gold_facts": [list(fact) for fact in question.facts]} if question.facts else {}),
    }


def supported(gold: Sequence[Fact], score: AnswerScore, facts: Sequence[Fact] | None) -> dict[str, Any]:
    """The official scores of supporting facts and the joint scores; null if there is nothing to score."""
    if facts is None or not gold:
        return {"support": None, "joint": None}
    support = score_supporting_facts(facts, gold)
    return {"support": asdict(support), "joint": asdict(joint(score, support))}


def rescored(row: Mapping[str, Any], scorer: Scorer) -> dict[str, Any]:
    """An answered row scored again by another scorer; what does not depend on the scorer is kept."""
    golds = tuple(dict.fromkeys(gold for gold in (row["gold"], *row["aliases"]) if gold.strip()))
    score = scorer(row["prediction"], golds)
    drafts = [scorer(round_["draft"]["short_answer"], golds) for round_ in row["rounds"]]
    rounds = [{**round_, "em": own.em, "f1": own.f1} for round_, own in zip(row["rounds"], drafts, strict=True)]
    combined = row["joint"] and asdict(joint(score, SupportScore(**row["support"])))
    return {**row, **asdict(score), "rounds": rounds, "joint": combined}


def official_predictions(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Predictions in the format of the official HotpotQA script; a failed question has an empty answer."""
    return {
        "answer": {row["id"]: row["prediction"] or "" for row in rows},
        "sp": {row["id"]: row.get("supporting_facts", []) for row in rows},
    }


def _round_row(round_: Round, question: Question, answer: Answer, scorer: Scorer) -> dict[str, Any]:
    score = scorer(round_.draft.short_answer, question.golds)
    evidence = [found.passage for found in answer.evidence]
    return {
        **asdict(round_),
        "em": score.em,
        "f1": score.f1,
        "evidence_recall": evidence_recall(question, round_, evidence),
        "answer_recall": answer_recall(question, round_, evidence),
    }


def _spent(totals: Totals, latency_s: float, waited_s: float | None) -> dict[str, Any]:
    return {
        "latency_s": round(latency_s, 4),
        **({} if waited_s is None else {"waited_s": round(waited_s, 4)}),
        "timed": totals.cached_calls == 0,
        "llm_calls": totals.calls,
        "cached_calls": totals.cached_calls,
        "tokens": {
            "prompt": totals.prompt_tokens,
            "cache_hit": totals.cache_hit_tokens,
            "completion": totals.completion_tokens,
            "reasoning": totals.reasoning_tokens,
        },
        **({"unmetered_calls": totals.unmetered_calls} if totals.unmetered_calls else {}),
        "cost_usd": totals.cost_usd,
        "paid_usd": totals.paid_usd,
    }


def _usage(call: LedgerRow) -> dict[str, Any]:
    known = call.usage_known
    return {
        "stage": call.stage,
        "role": call.role,
        "tier": call.tier,
        "model": call.model,
        **({"answered_by": call.answered_by} if call.answered_by else {}),
        "round": call.round,
        "prompt": call.prompt_tokens if known else None,
        "cache_hit": call.cache_hit_tokens if known else None,
        "completion": call.completion_tokens if known else None,
        "reasoning": call.reasoning_tokens if known else None,
        "cut": call.finish_reason == CUT,
    }


class _Tokens(BaseModel, strict=True):
    prompt: int
    cache_hit: int
    completion: int


class _Draft(BaseModel, strict=True):
    short_answer: str
    abstained: bool


class _Packing(BaseModel, strict=True):
    packed_ids: list[str]
    shortened_ids: list[str]
    left_out_ids: list[str]


class _Deficit(BaseModel, strict=True):
    deficit: str


class _RoundRow(BaseModel, strict=True):
    """The fields of a round that summary and analyses read."""

    index: int
    draft: _Draft
    em: UnitFloat
    f1: UnitFloat
    packing: _Packing
    evidence_ids: list[str]
    satisfied: bool
    signals: dict[str, Any] | None
    diagnosis: _Deficit | None
    plan: _Deficit | None


class _FailedRow(BaseModel, strict=True):
    """The fields that every row must have, so that a run cannot fail on an old row after everything was paid."""

    question: str
    gold: str
    latency_s: FiniteFloat
    llm_calls: int
    cached_calls: int
    tokens: _Tokens
    cost_usd: Annotated[Decimal | None, Field(strict=False)]
    rounds: list[_RoundRow]
    error: str | None


class _AnsweredRow(_FailedRow):
    prediction: str
    em: UnitFloat
    f1: UnitFloat
    precision: UnitFloat
    recall: UnitFloat
    stop_reason: str
    fired: bool
    chosen: int
    suspect: list[str]


def require_whole(rows: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Raise `InputError` if a row of the file is damaged."""
    for row in rows:
        if (damage := fault(row)) is not None:
            raise InputError(
                f"{str(file)!r} has a damaged row, of {row['method']!r} for {row['id']!r} ({damage}); "
                "remove that line, and --resume runs the question again."
            )


def fault(row: Mapping[str, Any]) -> str | None:
    """What is wrong with a row; `None` if it is valid."""
    try:
        (_AnsweredRow if row["error"] is None else _FailedRow).model_validate(dict(row))
    except ValidationError as error:
        return first_fault(error)
    return None
