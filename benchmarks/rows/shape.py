"""The fields of a row of `samples.jsonl` that resuming and summarising need; `samples.py` writes it."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from meta_agent_rag.errors import InputError
from meta_agent_rag.settings import UnitFloat
from meta_agent_rag.wording import first_fault


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class _Scores(_Part):
    em: UnitFloat
    f1: UnitFloat
    precision: UnitFloat
    recall: UnitFloat


class _Draft(_Part):
    short_answer: str
    abstained: bool


class _Packing(_Part):
    packed_ids: list[str]
    shortened_ids: list[str]
    left_out_ids: list[str]


class _Deficit(_Part):
    deficit: str


class _Round(_Part):
    index: int
    em: UnitFloat
    draft: _Draft
    packing: _Packing
    plan: _Deficit | None
    diagnosis: _Deficit | None
    signals: dict[str, float | bool | None] | None
    satisfied: bool
    evidence_recall: dict[str, float] | None = None
    answer_recall: dict[str, float] | None = None


class _Tokens(_Part):
    prompt: int
    cache_hit: int
    completion: int
    reasoning: int = 0


class _Call(_Part):
    stage: str
    tier: str
    round: int
    prompt: int | None
    cache_hit: int | None
    completion: int | None
    model: str | None = None


class _Failed(_Part):
    question: str
    gold: str
    latency_s: FiniteFloat
    timed: bool = True
    llm_calls: int
    cached_calls: int
    tokens: _Tokens
    cost_usd: Annotated[Decimal | None, Field(strict=False)]
    rounds: list[_Round]
    notes: list[str] = []
    supporting_facts_gold: list[Any] = []
    support: _Scores | None = None
    joint: _Scores | None = None
    error: str | None


class _Answered(_Failed, _Scores):
    prediction: str
    stop_reason: str
    fired: bool
    chosen: int
    suspect: list[str]
    usage: list[_Call] = []
    judge: UnitFloat | None = None


def require_whole(rows: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Raises `InputError` if a row is not of this version: a run would otherwise fail after everything was paid."""
    for row in rows:
        if (damage := fault(row)) is not None:
            raise InputError(
                f"{str(file)!r} has a damaged row, of {row['method']!r} for {row['id']!r} ({damage}); "
                "remove that line, and --resume runs the question again."
            )


def fault(row: Mapping[str, Any]) -> str | None:
    """What is wrong with a row; `None` if it is valid."""
    try:
        (_Answered if row["error"] is None else _Failed).model_validate(dict(row))
    except ValidationError as error:
        return first_fault(error)
    return None
