"""A row of `samples.jsonl`: one method's answer to one question, with all its rounds, scored."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from meta_agent_rag.agent.engine import Answer
from meta_agent_rag.agent.state import Round
from meta_agent_rag.datasets import Question
from meta_agent_rag.llm.call import CUT
from meta_agent_rag.llm.ledger import LedgerRow, Totals, lost_calls

from ..metrics import AnswerScore, joint, score_answer, score_supporting_facts
from .supporting_facts import Fact, supporting_facts
from .survival import answer_recall, evidence_recall


def sample_row(
    question: Question, method: str, answer: Answer, *, latency_s: float, quotes: bool = True
) -> dict[str, Any]:
    """The row of an answered question; scores are 0..1, money USD as text, time seconds.

    `support` and `joint` are the official scores of supporting facts and the joint scores, if the
    method quotes (`quotes`) and the data set labels sentences, else null. `timed` says that `latency_s` is a real
    latency, not shortened by the response cache. If a judge is used, its verdict is
    added as `judge`: 1, 0, or null if the call failed. `usage` lists the method's calls in the order in which they
    ended, each with role, model and tokens (null if the server did not report them); `cut` says that the
    reply reached its limit. `lost_calls`, if there are any, counts the calls that got no reply and were done without.
    """
    score = score_answer(answer.short_answer, question.golds)
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
        "rounds": [_round_row(round_, question, answer) for round_ in answer.rounds],
        "evidence": [found.passage.id for found in answer.evidence],
        "suspect": [found.passage.id for found in answer.evidence if found.suspect],
        "dropped": [{"passage_id": one.passage_id, "reason": one.reason} for one in answer.dropped],
        "supporting_facts": facts,
        "supporting_facts_gold": list(question.supporting_facts),
        **supported(question, score, facts if quotes else None),
        "notes": list(answer.notes),
        **_spent(answer.totals, latency_s),
        "usage": [_usage(call) for call in answer.calls],
        **({"lost_calls": lost} if lost else {}),
        "error": None,
    }


def supported(question: Question, score: AnswerScore, facts: Sequence[Fact] | None) -> dict[str, Any]:
    """The official scores of supporting facts and the joint scores; null if there is nothing to score."""
    if facts is None or not question.supporting_facts:
        return {"support": None, "joint": None}
    support = score_supporting_facts(facts, question.supporting_facts)
    return {"support": asdict(support), "joint": asdict(joint(score, support))}


def failed_row(question: Question, method: str, error: Exception, spent: Totals, *, latency_s: float) -> dict[str, Any]:
    """The row of a question that could not be answered: counted and listed, with null instead of a score."""
    return {
        **asked(question, method),
        "prediction": None,
        "em": None,
        "f1": None,
        "precision": None,
        "recall": None,
        "rounds": [],
        "supporting_facts_gold": list(question.supporting_facts),
        "support": None,
        "joint": None,
        "notes": [],
        **_spent(spent, latency_s),
        "error": f"{type(error).__name__}: {error}",
    }


def _spent(totals: Totals, latency_s: float) -> dict[str, Any]:
    return {
        "latency_s": round(latency_s, 4),
        "timed": totals.cached_calls == 0,
        "llm_calls": totals.calls,
        "cached_calls": totals.cached_calls,
        "tokens": {
            "prompt": totals.prompt_tokens,
            "cache_hit": totals.cache_hit_tokens,
            "completion": totals.completion_tokens,
            "reasoning": totals.reasoning_tokens,
        },
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
        "round": call.round,
        "prompt": call.prompt_tokens if known else None,
        "cache_hit": call.cache_hit_tokens if known else None,
        "completion": call.completion_tokens if known else None,
        "reasoning": call.reasoning_tokens if known else None,
        "cut": call.finish_reason == CUT,
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


def _round_row(round_: Round, question: Question, answer: Answer) -> dict[str, Any]:
    score = score_answer(round_.draft.short_answer, question.golds)
    evidence = [found.passage for found in answer.evidence]
    return {
        **asdict(round_),
        "em": score.em,
        "f1": score.f1,
        "evidence_recall": evidence_recall(question, round_, evidence),
        "answer_recall": answer_recall(question, round_, evidence),
    }


def official_predictions(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Predictions in the format of the official HotpotQA script; a failed question has an empty answer."""
    return {
        "answer": {row["id"]: row["prediction"] or "" for row in rows},
        "sp": {row["id"]: row.get("supporting_facts", []) for row in rows},
    }
