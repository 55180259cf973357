"""The figures: rules broken with and without each hook, quality of the scope guard, and latency."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meta_agent_rag.chat.coach.coach import CoachReply, obeys
from meta_agent_rag.chat.coach.hook import CoachDraft, Hooks, IncomingMessage, Scope
from meta_agent_rag.chat.coach.hooks import discover_hooks
from meta_agent_rag.chat.coach.levels import levels
from meta_agent_rag.retrieval.hybrid import Retriever

from .explainer import Talk, asked_by_coach, data, explainer, repeating, scripted

TURNS_A_TALK = 10


async def replies_of(talk: Talk, turns: int) -> list[tuple[int, CoachReply]]:
    """A number of turns over all levels, in conversations of ten, as (level, reply)."""
    questions = data("questions")["within"]
    numbers, replies = list(levels()), []
    for begin in range(0, turns, TURNS_A_TALK):
        size = min(TURNS_A_TALK, turns - begin)
        level = numbers[begin // TURNS_A_TALK % len(numbers)]
        messages = [questions[(begin + place) % len(questions)] for place in range(size)]
        replies += [(level, reply) for reply in await talk.held(messages, level)]
    return replies


def violations(replies: Sequence[tuple[int, CoachReply]]) -> dict[str, Any]:
    """The figures of a run of replies: shares of broken rules before and after, and the regenerations."""
    asked = [(level, reply) for level, reply in replies if reply.trace.attempts]
    hints = sum(1 for _, reply in asked if reply.trace.emergency)
    judged = [(level, reply) for level, reply in asked if not reply.trace.emergency]
    retries = [len(reply.trace.attempts) - 1 for _, reply in asked]
    return {
        "replies": len(replies),
        "hints": hints,
        "violations_before": _share(not obeys(reply.trace.draft, level) for level, reply in judged),
        "violations_after_retry": _share(not obeys(reply.trace.attempts[-1].text, level) for level, reply in judged),
        "violations_after": _share(not obeys(reply.text, level) for level, reply in judged),
        "retries": sum(retries),
        "most_retries_of_a_reply": max(retries, default=0),
        "outcomes": dict(sorted(Counter(reply.trace.outcome for _, reply in replies).items())),
    }


async def hook_by_hook(folder: Path, retriever: Retriever, scope: Scope | None) -> dict[str, dict[str, float]]:
    """For each hook, the share of cases that go wrong without it and with it."""
    found: dict[str, dict[str, float]] = {}
    for hook, missed in (
        ("scope_guard", _outside_answered if scope is not None else None),
        ("deadlock_breaker", _stuck_without_hint),
        ("validation", _rules_broken),
        ("exit_trigger", _success_unseen),
    ):
        if missed is not None:
            every = discover_hooks()
            found[hook] = {
                "before": await missed(folder, retriever, every.without(hook), scope),
                "after": await missed(folder, retriever, every, scope),
            }
    return found


async def _outside_answered(folder: Path, retriever: Retriever, hooks: Hooks, scope: Scope | None) -> float:
    async with scripted(explainer(), folder) as model:
        talk = Talk(model=model, retriever=retriever, hooks=hooks, scope=scope)
        replies = [(await talk.held([message], 1))[0] for message in data("questions")["outside"]]
    return _share(reply.trace.outcome != "out_of_scope" for reply in replies)


async def _stuck_without_hint(folder: Path, retriever: Retriever, hooks: Hooks, scope: Scope | None) -> float:
    async with scripted(explainer(), folder) as model:
        talk = Talk(model=model, retriever=retriever, hooks=hooks)
        rows = [(message, True) for message in data("replies")["stuck"]]
        rows += [(message, False) for message in data("replies")["trying"]]
        got = [
            (bool((await talk.held([message], 1, begins_with=asked_by_coach()))[0].trace.emergency), stuck)
            for message, stuck in rows
        ]
    return _share(hinted != stuck for hinted, stuck in got)


async def _rules_broken(folder: Path, retriever: Retriever, hooks: Hooks, scope: Scope | None) -> float:
    async with scripted(explainer(), folder) as model:
        replies = await replies_of(Talk(model=model, retriever=retriever, hooks=hooks), 60)
    return _share(not obeys(reply.text, level) for level, reply in replies if not reply.trace.emergency)


async def _success_unseen(folder: Path, retriever: Retriever, hooks: Hooks, scope: Scope | None) -> float:
    wrong = []
    rows = [(text, True) for text in data("replies")["acknowledging"]]
    for text, success in [*rows, *((text, False) for text in data("replies")["praising"])]:
        async with scripted(repeating(text), folder) as model:
            (reply,) = await Talk(model=model, retriever=retriever, hooks=hooks).held(["The tilt of the axis?"], 1)
            wrong.append(reply.acknowledged != success)
    return _share(wrong)


async def scope_quality(scope: Scope, within: Sequence[str], outside: Sequence[str]) -> dict[str, Any]:
    """Precision and recall of accepting messages, and the calibrated threshold."""
    scored = [
        (found, is_within)
        for is_within, rows in ((True, within), (False, outside))
        for message in rows
        if (found := await scope.score(message)) is not None
    ]
    passed = [is_within for found, is_within in scored if found.score >= found.threshold]
    return {
        "threshold": round(scored[0][0].threshold, 4) if scored else None,
        "within": len(within),
        "outside": len(outside),
        "precision": round(sum(passed) / len(passed), 4) if passed else None,
        "recall": round(sum(passed) / len(within), 4) if within else None,
    }


async def added_latency(scope: Scope | None) -> dict[str, float]:
    """Milliseconds that all hooks together take for a turn: median and 95th percentile."""
    hooks, taken = discover_hooks(), []
    messages = [*data("questions")["within"], *data("questions")["outside"], *data("replies")["stuck"]]
    drafts = [*data("replies")["drafts"], *data("replies")["regenerations"]]
    incoming = [
        IncomingMessage(message=message, history=asked_by_coach(), level=level, scope=scope)
        for message in messages
        for level in levels().values()
    ]
    await _through(hooks, incoming[0], drafts[0])  # words are read, and anchors encoded, once per process
    for place, one in enumerate(incoming):
        began = time.perf_counter()
        await _through(hooks, one, drafts[place % len(drafts)])
        taken.append(1000 * (time.perf_counter() - began))
    return {"p50_ms": round(float(np.percentile(taken, 50)), 3), "p95_ms": round(float(np.percentile(taken, 95)), 3)}


async def _through(hooks: Hooks, incoming: IncomingMessage, draft: str) -> None:
    for before in hooks.before:
        await before.before(incoming)
    for after in hooks.after:
        after.after(CoachDraft(text=draft, message=incoming.message, level=incoming.level))


def _share(flags: Any) -> float:
    values = [bool(flag) for flag in flags]
    return round(sum(values) / len(values), 4) if values else 0.0
