"""What a conversation remembers: its latest exchanges verbatim, and a summary of older ones; immutable and bounded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import NonNegativeInt

from ..errors import BudgetError, ModelError
from ..llm.client import ModelSession
from ..llm.messages import Message
from ..prompts import estimate_tokens, fenced, phrase, prompt
from ..text.normalise import encodable
from .phrases import reply_phrase

LONGEST_TEXT = 4000
"""The most characters kept of a question, its standalone form or an answer; longer texts are cut."""
LONGEST_SUMMARY = 1500
"""The most characters of the running summary."""
COACH, HINT = "coach", "hint"
"""How the coach's exchanges are marked; `HINT` if it broke a deadlock."""
FOLD_AT, KEPT = 8, 4
"""Once so many exchanges have gathered, or they take too many tokens, all but so many are folded into the summary."""
MOST = 4 * FOLD_AT
"""The hard bound: if folding keeps failing, the oldest exchanges beyond it are dropped."""

_SHORTEST_SHARE = 32
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question for the documents and its answer.

    `question` is in the user's own words, `standalone` its self-contained form, `turn` counts
    the questions of the conversation from 1. `mode` says who answered: `teacher`, `coach`, `hint` if the coach
    broke a deadlock, empty for the plain companion. `short_answer` is the bare answer, if there was one. `topic`
    is that of the coach's reply, if known.
    """

    question: str
    answer: str
    standalone: str
    turn: NonNegativeInt
    mode: str = ""
    short_answer: str = ""
    topic: str = ""

    @property
    def is_coaching(self) -> bool:
        """Whether the coach answered, so that the next message may be an answer to it."""
        return self.mode in {COACH, HINT}


@dataclass(frozen=True, kw_only=True)
class History:
    """A running summary of older exchanges, and the latest ones verbatim, the oldest first.

    `turns` counts all exchanges so far, `dropped` those that were removed without being summarised.
    """

    summary: str = ""
    exchanges: tuple[Exchange, ...] = ()
    turns: NonNegativeInt = 0
    dropped: NonNegativeInt = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing for a follow-up to refer to."""
        return not self.summary and not self.exchanges

    @property
    def topic(self) -> str:
        """The latest topic of the coach's replies; empty if none is known."""
        return next((exchange.topic for exchange in reversed(self.exchanges) if exchange.topic), "")

    def with_exchange(
        self, *, question: str, answer: str, standalone: str, mode: str = "", short_answer: str = "", topic: str = ""
    ) -> "History":
        """The history plus one exchange, its texts cut to `LONGEST_TEXT`; the oldest beyond `MOST` are dropped."""
        exchange = Exchange(
            question=clipped(encodable(question), LONGEST_TEXT),
            answer=clipped(encodable(answer), LONGEST_TEXT),
            standalone=clipped(encodable(standalone), LONGEST_TEXT),
            turn=self.turns + 1,
            mode=mode,
            short_answer=clipped(encodable(short_answer), LONGEST_TEXT),
            topic=encodable(topic),
        )
        exchanges = (*self.exchanges, exchange)
        surplus = max(len(exchanges) - MOST, 0)
        return replace(self, exchanges=exchanges[surplus:], turns=exchange.turn, dropped=self.dropped + surplus)


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """The reply to a message: the text to show, and the bare answer.

    `kind` marks the exchange in the history if the mode does not; a reply that is not `remembered` is a notice. `topic`
    is the coach's: the chosen one, else the nearest one, else that of the conversation so far.
    """

    text: str
    short_answer: str = ""
    kind: str = ""
    remembered: bool = True
    topic: str = ""


async def compacted(history: History, model: ModelSession) -> tuple[History, str]:
    """The history with older exchanges folded into the summary, in one call, and a note if that failed.

    Then every exchange is kept, and the next turn tries again.
    """
    released = len(history.exchanges) - kept(history.exchanges, model.owner.settings.memory_tokens)
    if not released:
        return history, ""
    try:
        summary = await _summarised(model, history.summary, history.exchanges[:released])
    except (ModelError, BudgetError) as error:
        return history, reply_phrase("not_folded", reason=error)
    return replace(history, exchanges=history.exchanges[released:], summary=summary), ""


def kept(exchanges: Sequence[Exchange], tokens: int) -> int:
    """The number of latest exchanges that are kept verbatim, in about that many tokens, and at least one.

    All are kept until they overflow; after an overflow by tokens at most half of them, so that the next turn fits.
    """
    if _size(exchanges) > tokens:
        return _that_fit(exchanges[-KEPT:], tokens // 2)
    return len(exchanges) if len(exchanges) < FOLD_AT else KEPT


def _that_fit(exchanges: Sequence[Exchange], tokens: int) -> int:
    number = len(exchanges)
    while number > 1 and _size(exchanges[-number:]) > tokens:
        number -= 1
    return number


def _size(exchanges: Sequence[Exchange]) -> int:
    """The estimated number of tokens that the exchanges take in a prompt."""
    return sum(estimate_tokens(_line(exchange)) for exchange in exchanges)


async def _summarised(model: ModelSession, summary: str, exchanges: Sequence[Exchange]) -> str:
    """The summary extended by the exchanges, which the prompt shows in about MEMORY_TOKENS."""
    settings = model.owner.settings
    task = prompt("summarizer", settings.prompts_dir).text(
        summary=fenced(summary) or phrase("nothing_yet"),
        conversation=transcript(exchanges, settings.memory_tokens),
    )
    said = await model.areply("summarize", [Message(role="user", content=task)])
    return clipped_at_sentence(" ".join(said.text.split()), LONGEST_SUMMARY)


def clipped(text: str, characters: int) -> str:
    """The text, or its beginning up to the last whole word and an ellipsis, in at most that many characters.

    >>> clipped("The Salt Road", 10)
    'The Salt …'
    """
    text = text.strip()
    if len(text) <= characters:
        return text
    whole = text[: max(characters - 1, 0)].rpartition(" ")[0]
    beginning = whole or text[: max(characters - 2, 0)]
    return f"{beginning.rstrip()} …"[:characters]


def clipped_at_sentence(text: str, characters: int) -> str:
    """Like `clipped`, but cut at the end of the last sentence that fits, if any does."""
    text = text.strip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text[:characters])]
    return text[: ends[-1]] if ends and len(text) > characters else clipped(text, characters)


def transcript(exchanges: Sequence[Exchange], tokens: int) -> str:
    """The exchanges as shown in a prompt, in about that many tokens.

    If they need more, each gets an equal share and long answers are cut; no exchange is left out.
    The prompt's own tags in it are escaped, so that a text cannot close them.
    """
    shown = [_line(exchange) for exchange in exchanges]
    if _size(exchanges) > tokens:
        share = max(tokens // len(shown), _SHORTEST_SHARE)
        sizes = [estimate_tokens(line) for line in shown]
        shown = [
            line if size <= share else clipped(line, len(line) * share // size)
            for line, size in zip(shown, sizes, strict=True)
        ]
    return fenced("\n".join(shown))


def conversation(history: History, tokens: int) -> str:
    """The conversation so far, for whoever answers a message that refers to it, in about that many tokens at most.

    Consists of the summary, and the exchanges in the user's words.
    """
    summary = fenced(history.summary)
    left = max(tokens - estimate_tokens(summary), 0)
    own = tuple(replace(exchange, standalone=exchange.question) for exchange in history.exchanges)
    return "\n".join(part for part in (summary, transcript(own, left)) if part)


def _line(exchange: Exchange) -> str:
    # one line each: an answer with blank lines would look like several turns
    asked, answered = (" ".join(text.split()) for text in (exchange.standalone, exchange.answer))
    return f"User: {asked}\nAssistant: {answered}"
