"""Cost per question: calls, prompt tokens, the share served by the prefix cache, and dollars by tariff."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from meta_agent_rag.llm.pricing import Tariff, tariff_book
from meta_agent_rag.llm.providers import providers

from ..tables import Table, number, percent
from .analysis import Analysis, Figures, Material, Row, share

_PROVIDER = "deepseek"
_WRITERS = frozenset({"write", "rewrite", "baseline", "step"})
_MILLION = 1_000_000
_QUESTIONS = 1_000

Call = Mapping[str, Any]


def measure(material: Material) -> dict[str, Figures]:
    """Means over the answered questions whose calls all have known tokens; methods without any are left out."""
    measured: dict[str, Figures] = {}
    for arm in material.arms:
        metered = [
            row
            for row in material.answered(arm)
            if row.get("usage") and all(call["prompt"] is not None for call in row["usage"])
        ]
        if metered:
            measured[arm.name] = economy(metered, material.tariffs or newest_tariffs())
    return measured


def economy(rows: Sequence[Row], tariffs: Mapping[str, Tariff]) -> dict[str, Any]:
    """The figures of some questions; shares in 0..1, money in USD per 1,000 questions.

    `own_cache` assumes that every tier has its own prefix cache, as two models of a provider do: the first
    call of a question to each tier is then uncached, regardless of what was recorded.
    """
    calls = [call for row in rows for call in row["usage"]]
    return {
        "n": len(rows),
        "calls": round(len(calls) / len(rows), 2),
        "calls_by_tier": {
            tier: round(sum(call["tier"] == tier for call in calls) / len(rows), 2) for tier in sorted(tariffs)
        },
        "prompt_tokens": round(sum(call["prompt"] for call in calls) / len(rows), 2),
        "completion_tokens": round(sum(call["completion"] for call in calls) / len(rows), 2),
        "recorded": _cached([(row, row["usage"]) for row in rows], tariffs),
        "own_cache": _cached([(row, apart(row)) for row in rows], tariffs),
    }


def _cached(asked: Sequence[tuple[Row, Sequence[Call]]], tariffs: Mapping[str, Tariff]) -> dict[str, Any]:
    later = [call for row, usage in asked for call in following(row, usage)]
    spent = [_dollars(call, tariffs[call["tier"]]) for _, usage in asked for call in usage]
    return {
        "prefix_share": share(sum(call["cache_hit"] for call in later), sum(call["prompt"] for call in later)),
        "usd": round(_QUESTIONS * math.fsum(spent) / len(asked), 4),
    }


def following(row: Row, usage: Sequence[Call]) -> list[Call]:
    """The calls of a question after its first one, without closed-book probes, which share no evidence."""
    return [call for call in usage if not _is_probe(row, call)][1:]


def _is_probe(row: Row, call: Call) -> bool:
    """Whether a call asked the model's memory, without any passage."""
    writes = call["stage"] in _WRITERS and call["round"] < len(row["rounds"])
    return writes and not row["rounds"][call["round"]]["packing"]["packed_ids"]


def apart(row: Row) -> list[Call]:
    """A question's calls as two models would bill them: the first call to each tier finds nothing cached.

    A closed-book probe leaves no evidence in the cache, so the next call to its tier still counts as the first.
    """
    seen: set[str] = set()
    found = []
    for call in row["usage"]:
        found.append(call if call["tier"] in seen else {**call, "cache_hit": 0})
        if not _is_probe(row, call):
            seen.add(call["tier"])
    return found


def _dollars(call: Call, tariff: Tariff) -> float:
    """The price of a call outside peak hours."""
    missed = call["prompt"] - call["cache_hit"]
    usd = call["cache_hit"] * tariff.cache_hit + missed * tariff.cache_miss + call["completion"] * tariff.completion
    return float(usd / _MILLION)


def newest_tariffs() -> dict[str, Tariff]:
    """For each tier the newest entry of the tariff book for DeepSeek's model of that tier."""
    deepseek = providers()[_PROVIDER]
    models = {"flash": deepseek.flash, "pro": deepseek.pro}
    return {
        tier: max((row for row in tariff_book().tariffs if model in row.models), key=lambda row: row.since or date.min)
        for tier, model in models.items()
    }


def tables(figures: Figures) -> Sequence[Table]:
    """One row per method."""
    rows = [
        (
            method,
            str(found["n"]),
            number(found["calls"], 2),
            number(found["prompt_tokens"], 0),
            number(found["completion_tokens"], 0),
            *(percent(found[cache]["prefix_share"]) for cache in ("recorded", "own_cache")),
            *(number(found[cache]["usd"], 2) for cache in ("recorded", "own_cache")),
        )
        for method, found in figures.items()
    ]
    caches = ("", ", a cache a tier")
    head = (
        *("method", "questions", "calls", "prompt tokens", "completion tokens"),
        *(f"from the prefix cache, %{cache}" for cache in caches),
        *(f"USD per 1,000{cache}" for cache in caches),
    )
    return [Table(name="economy", title="Calls, tokens and dollars per question", head=head, rows=rows)]


ANALYSIS = Analysis(
    name="economy",
    title="Prompt economy",
    about=(
        "Means over answered questions, failed calls and repeated attempts included.",
        "From the prefix cache: the share of prompt tokens after a question's first call that the provider's prefix",
        "cache served; closed-book probes, which have no evidence, are left out.",
        "USD: the recorded tokens at DeepSeek's newest off-peak tariff, the calls of each tier at the price of its",
        "model, regardless of the model that answered.",
        "A cache per tier: a question's first call to each tier counts as uncached, since two models share no cache.",
        "Calls answered by our own response cache count with the usage recorded when they were made.",
    ),
    measure=measure,
    tables=tables,
    order=45,
)
