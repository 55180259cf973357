"""One response as one denormalised row with everything that led to it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ...chat.coach.coach import CoachReply
from ...chat.history import HINT
from ...grounding.claims import Claim
from ...grounding.exact import Support
from ...llm.ledger import total
from ...llm.messages import Reply
from ...retrieval.passage import Found
from ...text.normalise import encodable
from ..failures import PROVIDER_REFUSALS
from ..request_record import ModelCall, RequestRecord, SmallTalk, Summarised

Row = Mapping[str, Any]
_WITH_VALUES = "RequestValidationError"
"""Messages of earlier versions that begin so contain the rejected values."""
_WIDTHS = {"error": 64, "endpoint": 64, "corpus": 64, "stop_reason": 64, "refused": 64}


def as_row(record: RequestRecord, status: int) -> dict[str, Any]:
    """The row of a response about to be sent with `status`; pure JSON, without values that a database rejects."""
    client, totals = record.client, total(call.row for call in record.calls)
    row = {
        "query_id": record.query_id,
        "at": record.at.isoformat(),
        "answer_id": record.answer_id,
        "request_id": record.request_id,
        "client_id": "" if client is None else client.id,
        "client_name": "" if client is None else client.name,
        "endpoint": record.endpoint,
        "status": status,
        "success": status == 200 and record.error is None,
        "error": record.error,
        "message": record.message,
        "question": record.question,
        "source_mode": record.source_mode,
        "mode": record.mode,
        "corpus": record.corpus,
        "session": record.session,
        "queries": record.queries,
        "degraded": record.degraded,
        "dropped": [asdict(gone) for gone in record.dropped],
        "seconds": record.seconds,
        "model_calls": [_call(call) for call in record.calls],
        "prompt_tokens": totals.prompt_tokens,
        "cache_hit_tokens": totals.cache_hit_tokens,
        "completion_tokens": totals.completion_tokens,
        "cost_usd": _cost(record.calls),
        **_answer(record),
    }
    return {name: _cut(name, value) for name, value in _storable(row).items()}


def _cost(calls: Sequence[ModelCall]) -> float | None:
    """The cost in USD; if a call's bill is unknown, its maximum counts. `None` if a price is unknown."""
    spent = Decimal(0)
    for call in (one.row for one in calls):
        cost = call.paid_usd if call.cost_usd is None else call.cost_usd
        if cost is None and call.error is None:
            return None
        spent += cost or 0
    return float(spent)


def from_journal(row: Row) -> dict[str, Any]:
    """A row in the form of a table: its time as a UTC datetime; rows of earlier versions may lack columns."""
    message = row.get("message")
    values = isinstance(message, str) and message.startswith(_WITH_VALUES)
    coached = dict.fromkeys(("coach_success", "hint", "topic"))
    kept = {"mode": "", "checks": {}, "dropped": [], **coached, **row, "message": None if values else message}
    return {**kept, "at": datetime.fromisoformat(row["at"]).astimezone(UTC)}


def refusal_note(row: Row) -> str | None:
    """What the operator needs to know about a refusal: why the provider refused, or which field was invalid."""
    message = row["message"]
    if row["error"] == "invalid_request" and message is not None:
        return None if message.startswith(_WITH_VALUES) else str(message).partition(": ")[2]
    return str(message or "") if row["error"] in PROVIDER_REFUSALS else None


def _answer(record: RequestRecord) -> dict[str, Any]:
    """The columns of the answer, empty if there was none."""
    result = record.result
    nothing: dict[str, Any] = {
        "passages": [],
        "answer": None,
        "short_answer": None,
        "refused": None,
        "stop_reason": None,
        "rounds": 0,
        "confidence": None,
        "level": None,
        "citations": [],
        "checks": {},
        "coach_success": None,
        "hint": None,
        "topic": None,
    }
    if result is None:
        return nothing
    if isinstance(result, CoachReply):
        return {
            **nothing,
            "passages": [_passage(found) for found in result.trace.evidence],
            "answer": result.text,
            "refused": result.refused,
            "stop_reason": result.trace.outcome,
            "rounds": len(result.trace.attempts),
            "checks": {"violations": list(result.trace.violations)},
            "coach_success": result.acknowledged,
            "hint": result.kind == HINT,
            "topic": result.topic or None,
        }
    if isinstance(result, Summarised):
        return {**nothing, **_summary(result)}
    if isinstance(result, SmallTalk):
        return {**nothing, "answer": result.text, "stop_reason": result.intent}
    sure = result.confidence
    return {
        **nothing,
        "passages": [_passage(found) for found in result.answer.evidence],
        "answer": result.text,
        "short_answer": result.short_answer,
        "refused": result.refused,
        "stop_reason": result.answer.stop_reason,
        "rounds": len(result.answer.rounds),
        "confidence": None if sure is None else sure.score,
        "level": None if sure is None else sure.level,
        "citations": [asdict(citation) for citation in result.citations],
        "checks": {
            "quotes": list(result.quotes),
            "leaks": list(result.leaks),
            "removed_citations": result.removed,
            "claims": [_claim(claim, support) for claim, support in result.claims],
        },
    }


def _summary(result: Summarised) -> dict[str, Any]:
    """The columns of a summary; of a dry run, only the stop reason."""
    if result.summary is None:
        return {"stop_reason": result.stop_reason}
    parts = [section for one in result.work.documents for section in one.sections]
    overviews = result.summary.overviews
    return {
        "passages": [_passage(found) for section in parts for found in section.passages],
        "answer": result.text,
        "stop_reason": result.stop_reason,
        "citations": [asdict(citation) for citation in result.summary.citations],
        "checks": {
            "invented": sum(section.invented for one in overviews for section in one.sections),
            "left_out": sum(one.left_out for one in overviews),
        },
    }


def _claim(claim: Claim, support: Support) -> dict[str, Any]:
    return {
        "text": claim.text,
        "supported": support.supported,
        "passage_id": support.passage_id,
        "words": list(support.words),
        "steps": list(support.steps),
        "missing": list(support.missing),
        "fault": support.fault,
    }


def _passage(found: Found) -> dict[str, Any]:
    passage = found.passage
    return {
        "id": passage.id,
        "doc_id": passage.doc_id,
        "title": passage.title,
        "score": found.score,
        "dense": found.dense,
        "lexical": found.lexical,
        "via": found.via,
    }


def _call(call: ModelCall) -> dict[str, Any]:
    row, outcome = call.row, call.outcome
    return {
        "stage": row.stage,
        "model": row.model,
        "round": row.round,
        "cached": row.cached,
        "seconds": row.latency_s,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": None if row.cost_usd is None else float(row.cost_usd),
        "error": row.error,
        "messages": [{"role": one.role, "content": one.content} for one in call.request.messages],
        "reply": outcome.text if isinstance(outcome, Reply) else None,
    }


def _storable(value: Any) -> Any:
    """The value without null bytes and lone surrogates at any depth; numbers that are not finite become `None`."""
    if isinstance(value, str):
        if value.isascii() and "\x00" not in value:
            return value
        return encodable(value).replace("\x00", "\ufffd")
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {str(key): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value if value is None or isinstance(value, bool | int) else str(value)


def _cut(name: str, value: Any) -> Any:
    return value[: _WIDTHS[name]] if name in _WIDTHS and isinstance(value, str) else value
