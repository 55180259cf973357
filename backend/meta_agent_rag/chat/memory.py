"""Keeps a history within its bounds: folds what the chosen memory releases, and loses nothing if that fails."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..errors import BudgetError, ModelError
from ..llm.client import ModelSession
from ..llm.messages import Message
from ..prompts import phrase, prompt
from ..prompts.fencing import fenced
from .answers import reply_phrase
from .history import LONGEST_SUMMARY, Exchange, History, clipped_at_sentence, transcript
from .memories import Limits, Memory, Share

Summarize: TypeAlias = Callable[[str, Sequence[Exchange]], Awaitable[str]]
"""Maps (the summary so far, the exchanges to fold into it) to the new summary."""


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """A history within its bounds, and notes for the user on how that was achieved."""

    history: History
    notes: tuple[str, ...] = ()


def bounded(history: History, limits: Limits) -> CompactionResult:
    """The history with at most `limits.most` exchanges, a bound that is reached only if folding keeps failing.

    The oldest exchanges are dropped, and a note says so.
    """
    surplus = len(history.exchanges) - limits.most
    if surplus <= 0:
        return CompactionResult(history=history)
    kept = replace(history, exchanges=history.exchanges[surplus:], dropped=history.dropped + surplus)
    return CompactionResult(history=kept, notes=(reply_phrase("forgotten", count=surplus),))


async def settled(history: History, *, memory: Memory, limits: Limits, summarize: Summarize) -> CompactionResult:
    """Partition the exchanges and fold those to be folded, in at most one call.

    If the call fails or returns no text, every exchange is kept, a note gives the reason, and the next
    turn tries again.
    """
    share = _sparing_the_coach(memory.share(history.exchanges, limits), history.exchanges[-1:])
    if not share.folded:
        kept = replace(history, exchanges=share.kept, dropped=history.dropped + len(share.dropped))
        return bounded(kept, limits)
    try:
        summary = clipped_at_sentence(await summarize(history.summary, share.folded), LONGEST_SUMMARY)
        reason = reply_phrase("empty_summary")
    except (ModelError, BudgetError) as error:
        summary, reason = "", str(error)
    if not summary:
        within = bounded(history, limits)
        return replace(within, notes=(reply_phrase("not_folded", reason=reason), *within.notes))
    dropped = history.dropped + len(share.dropped)
    return bounded(replace(history, summary=summary, exchanges=share.kept, dropped=dropped), limits)


def _sparing_the_coach(share: Share, latest: tuple[Exchange, ...]) -> Share:
    """The share, except that a latest exchange by the coach is kept, because the next message answers it."""
    if not any(each.is_coaching and each not in share.kept for each in latest):
        return share
    folded, dropped = (tuple(each for each in gone if each not in latest) for gone in (share.folded, share.dropped))
    return Share(kept=(*share.kept, *latest), folded=folded, dropped=dropped)


async def summarize(model: ModelSession, summary: str, exchanges: Sequence[Exchange]) -> str:
    """The summary extended by the exchanges; empty if the model returned no text.

    The prompt shows the exchanges in about MEMORY_TOKENS, however many there are.
    Raises a `ModelError` or a `BudgetError`.
    """
    settings = model.owner.settings
    task = prompt("summarizer", settings.prompts_dir).text(
        summary=fenced(summary) or phrase("nothing_yet"),
        conversation=transcript(exchanges, settings.memory_tokens),
    )
    return " ".join((await model.ainvoke("summarize", [Message(role="user", content=task)])).split())
