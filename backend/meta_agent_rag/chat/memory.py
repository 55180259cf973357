"""What a conversation remembers: the three memories, and the compaction of a history by the one in use."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..discovery import named
from ..errors import BudgetError, ModelError
from ..llm.client import ModelSession
from ..llm.messages import Message
from ..prompts import phrase, prompt
from ..prompts.fencing import fenced
from .history import LONGEST_SUMMARY, Exchange, History, clipped_at_sentence, exchange_tokens, transcript
from .phrases import reply_phrase

_TIMES_FOLD_AT = 4


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is remembered verbatim.

    `exchanges` is the number kept when older ones are folded, which happens once `fold_at` have gathered or they take
    more than `tokens`. With 0 exchanges each one is folded at once.
    """

    exchanges: int = 4
    fold_at: int = 8
    tokens: int = 3000

    @property
    def most(self) -> int:
        """The hard bound: if folding keeps failing, the oldest are dropped beyond four times `fold_at` exchanges."""
        return _TIMES_FOLD_AT * self.fold_at


Kept: TypeAlias = Callable[[Sequence[Exchange], Limits], int]
"""The number of latest exchanges that stay verbatim."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A way to remember: what is not `kept` is folded into the summary if it `summarises`, else forgotten."""

    name: str
    about: str
    kept: Kept
    summarises: bool = False


def _none(exchanges: Sequence[Exchange], limits: Limits) -> int:
    return 0


def _buffer(exchanges: Sequence[Exchange], limits: Limits) -> int:
    return _that_fit(exchanges[-limits.fold_at :], limits.tokens)


def _summary_buffer(exchanges: Sequence[Exchange], limits: Limits) -> int:
    """All until they overflow; after an overflow by tokens at most half of them, so that the next turn fits."""
    too_long = exchange_tokens(exchanges) > limits.tokens
    if len(exchanges) < (limits.fold_at if limits.exchanges else 1) and not too_long:
        return len(exchanges)
    kept = exchanges[max(len(exchanges) - limits.exchanges, 0) :]
    return _that_fit(kept, limits.tokens // 2) if too_long else len(kept)


def _that_fit(exchanges: Sequence[Exchange], tokens: int) -> int:
    """The number of latest exchanges that take at most so many tokens; the latest one always counts."""
    kept = len(exchanges)
    while kept > 1 and exchange_tokens(exchanges[-kept:]) > tokens:
        kept -= 1
    return kept


MEMORIES: Mapping[str, Memory] = {
    one.name: one
    for one in (
        Memory(name="buffer", about="the latest exchanges", kept=_buffer),
        Memory(name="none", about="nothing", kept=_none),
        Memory(
            name="summary_buffer",
            about="the latest exchanges, and a summary of older ones",
            kept=_summary_buffer,
            summarises=True,
        ),
    )
}


def memory_named(name: str) -> Memory:
    """The memory with that name (MEMORY). Raises `UnknownNameError`."""
    return named("memory", name, MEMORIES)


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """A history within its bounds, and notes for the user on how that was achieved."""

    history: History
    notes: tuple[str, ...] = ()


Summarize: TypeAlias = Callable[[str, Sequence[Exchange]], Awaitable[str]]
"""Maps (the summary so far, the exchanges to fold into it) to the new summary."""


def bounded(history: History, limits: Limits) -> CompactionResult:
    """The history with at most `limits.most` exchanges: the oldest are dropped, and a note says so."""
    surplus = len(history.exchanges) - limits.most
    if surplus <= 0:
        return CompactionResult(history=history)
    kept = replace(history, exchanges=history.exchanges[surplus:], dropped=history.dropped + surplus)
    return CompactionResult(history=kept, notes=(reply_phrase("forgotten", count=surplus),))


async def compacted(history: History, memory: Memory, limits: Limits, summarize: Summarize) -> CompactionResult:
    """Fold or forget what the memory releases, in at most one call.

    If the call fails or returns no text, every exchange is kept, a note gives the reason, and the next turn tries
    again. The coach's latest exchange is always kept, because the next message answers it.
    """
    kept = memory.kept(history.exchanges, limits)
    if not kept and history.exchanges and history.exchanges[-1].is_coaching:
        kept = 1
    released = history.exchanges[: len(history.exchanges) - kept]
    rest = replace(history, exchanges=history.exchanges[len(released) :])
    if not released or not memory.summarises:
        return bounded(replace(rest, dropped=history.dropped + len(released)), limits)
    reason = "the model returned no text."
    try:
        summary = clipped_at_sentence(await summarize(history.summary, released), LONGEST_SUMMARY)
    except (ModelError, BudgetError) as error:
        summary, reason = "", str(error)
    if summary:
        return bounded(replace(rest, summary=summary), limits)
    within = bounded(history, limits)
    return replace(within, notes=(reply_phrase("not_folded", reason=reason), *within.notes))


async def summarized(model: ModelSession, summary: str, exchanges: Sequence[Exchange]) -> str:
    """The summary extended by the exchanges, which the prompt shows in about MEMORY_TOKENS.

    Raises a `ModelError` or a `BudgetError`.
    """
    settings = model.owner.settings
    task = prompt("summarizer", settings.prompts_dir).text(
        summary=fenced(summary) or phrase("nothing_yet"),
        conversation=transcript(exchanges, settings.memory_tokens),
    )
    return " ".join((await model.ainvoke("summarize", [Message(role="user", content=task)])).split())
