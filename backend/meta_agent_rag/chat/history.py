"""What a conversation remembers: its latest exchanges verbatim, and a summary of older ones; immutable and bounded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import NonNegativeInt

from ..errors import BudgetError, ModelError
from ..llm.client import ModelSession
from ..llm.ledger import LedgerRow
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
"""Once so many exchanges have gathered, all but so many are folded into the summary."""
MOST = 4 * FOLD_AT
"""The hard bound: if folding keeps failing, the oldest exchanges beyond it are dropped."""
_SHORTEST_SHARE = 32


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question for the documents and its answer.

    `question` is in the user's own words, `standalone` its self-contained form, `turn` counts the questions of the
    conversation from 1. `mode` says who answered: `teacher`, `coach`, `hint` if the coach broke a deadlock, empty for
    the plain companion. `short_answer` is the bare answer, if there was one.
    """

    question: str
    answer: str
    standalone: str
    turn: NonNegativeInt
    mode: str = ""
    short_answer: str = ""

    @property
    def is_coaching(self) -> bool:
        """Whether the coach answered, so that the next message may be an answer to it."""
        return self.mode in {COACH, HINT}


@dataclass(frozen=True, kw_only=True)
class History:
    """A running summary of older exchanges, the latest ones verbatim, the oldest first, and their number so far."""

    summary: str = ""
    exchanges: tuple[Exchange, ...] = ()
    turns: NonNegativeInt = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing for a follow-up to refer to."""
        return not self.summary and not self.exchanges

    def with_exchange(
        self, *, question: str, answer: str, standalone: str, mode: str = "", short_answer: str = ""
    ) -> "History":
        """The history plus one exchange, its texts cut to `LONGEST_TEXT`; the oldest beyond `MOST` are dropped."""
        exchange = Exchange(
            question=clipped(encodable(question), LONGEST_TEXT),
            answer=clipped(encodable(answer), LONGEST_TEXT),
            standalone=clipped(encodable(standalone), LONGEST_TEXT),
            turn=self.turns + 1,
            mode=mode,
            short_answer=clipped(encodable(short_answer), LONGEST_TEXT),
        )
        return replace(self, exchanges=(*self.exchanges, exchange)[-MOST:], turns=exchange.turn)


@dataclass(frozen=True, kw_only=True)
class TurnReply:
    """The reply to a message: the text to show, and the bare answer.

    `kind` marks the exchange in the history if the mode does not; a reply that is not `remembered` is a notice.
    """

    text: str
    short_answer: str = ""
    kind: str = ""
    remembered: bool = True
    calls: tuple[LedgerRow, ...] = ()


async def compacted(history: History, model: ModelSession) -> tuple[History, str]:
    """The history with older exchanges folded into the summary, in one call, and a note if that failed.

    Then every exchange is kept, and the next turn tries again.
    """
    if len(history.exchanges) < FOLD_AT:
        return history, ""
    settings, released = model.owner.settings, history.exchanges[:-KEPT]
    task = prompt("summarizer", settings.prompts_dir).text(
        summary=fenced(history.summary) or phrase("nothing_yet"),
        conversation=transcript(released, settings.memory_tokens),
    )
    try:
        said = await model.areply("summarize", [Message(role="user", content=task)])
    except (ModelError, BudgetError) as error:
        return history, reply_phrase("not_folded", reason=error)
    summary = clipped(" ".join(said.text.split()), LONGEST_SUMMARY)
    return replace(history, exchanges=history.exchanges[-KEPT:], summary=summary), ""


def clipped(text: str, characters: int) -> str:
    """The text, or its beginning and an ellipsis, in at most that many characters.

    >>> clipped("The Salt Road", 10)
    'The Salt …'
    """
    text = text.strip()
    return text if len(text) <= characters else f"{text[: max(characters - 2, 0)].rstrip()} …"[:characters]


def transcript(exchanges: Sequence[Exchange], tokens: int) -> str:
    """The exchanges as shown in a prompt, in about that many tokens.

    If they need more, each gets an equal share and long answers are cut; no exchange is left out.
    The prompt's own tags in it are escaped, so that a text cannot close them.
    """
    shown = []
    for exchange in exchanges:
        # one line each: an answer with blank lines would look like several turns
        asked, answered = (" ".join(text.split()) for text in (exchange.standalone, exchange.answer))
        shown.append(f"User: {asked}\nAssistant: {answered}")
    sizes = [estimate_tokens(line) for line in shown]
    if sum(sizes) > tokens:
        share = max(tokens // len(shown), _SHORTEST_SHARE)
        shown = [clipped(line, len(line) * share // max(size, share)) for line, size in zip(shown, sizes, strict=True)]
    return fenced("\n".join(shown))


def conversation(history: History, tokens: int) -> str:
    """The conversation so far, for whoever answers a message that refers to it, in about that many tokens at most.

    Consists of the summary, and the exchanges in the user's words.
    """
    summary = fenced(history.summary)
    left = max(tokens - estimate_tokens(summary), 0)
    own = tuple(replace(exchange, standalone=exchange.question) for exchange in history.exchanges)
    return "\n".join(part for part in (summary, transcript(own, left)) if part)
