"""What is remembered of a conversation: immutable, bounded, and plain JSON where it is stored."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import NonNegativeInt

from ..prompts.tokens import estimate_tokens

LONGEST_TEXT = 4000
"""Characters of a question, its standalone form or an answer that are remembered; what is longer is cut."""

LONGEST_SUMMARY = 1500
"""Characters of the running summary."""

COACH, HINT = "coach", "hint"
"""How exchanges are marked that the coach answered; `HINT` where it broke a deadlock."""

_SHORTEST_SHARE = 32
_TAG = re.compile(r"<(?=\s*/?\s*(?:conversation|summary)\b)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question for the documents and its answer.

    `question` is in the user's own words, `standalone` the query that it was understood as, `turn` counts
    the questions of the conversation from 1. `mode` says who answered: `teacher`, `coach`, `hint` where the coach
    broke a deadlock, empty for the plain companion. `short_answer` is the bare answer, if there was one.
    """

    question: str
    answer: str
    standalone: str
    turn: NonNegativeInt
    mode: str = ""
    short_answer: str = ""

    @property
    def is_coaching(self) -> bool:
        """Did the coach answer, so that the next message may be an answer to it?"""
        return self.mode in {COACH, HINT}


@dataclass(frozen=True, kw_only=True)
class History:
    """A running summary of older exchanges, and the latest ones verbatim, the oldest first.

    `turns` counts all exchanges that there ever were, `dropped` those that went without being summarised.
    """

    summary: str = ""
    exchanges: tuple[Exchange, ...] = ()
    turns: NonNegativeInt = 0
    dropped: NonNegativeInt = 0

    @property
    def is_empty(self) -> bool:
        """Is there nothing that a follow-up could refer to?"""
        return not self.summary and not self.exchanges

    @property
    def text(self) -> str:
        """All that is remembered, for looking words up in."""
        return "\n".join([self.summary, *(part for exchange in self.exchanges for part in _said(exchange))])

    def with_exchange(
        self, *, question: str, answer: str, standalone: str, mode: str = "", short_answer: str = ""
    ) -> "History":
        """The history after one more exchange, its texts cut to `LONGEST_TEXT`."""
        exchange = Exchange(
            question=clipped(_writable(question), LONGEST_TEXT),
            answer=clipped(_writable(answer), LONGEST_TEXT),
            standalone=clipped(_writable(standalone), LONGEST_TEXT),
            turn=self.turns + 1,
            mode=mode,
            short_answer=clipped(_writable(short_answer), LONGEST_TEXT),
        )
        return replace(self, exchanges=(*self.exchanges, exchange), turns=self.turns + 1)


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
    """As `clipped`, but at the end of the last sentence that fits, where one does."""
    text = text.strip()
    if len(text) <= characters:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text[:characters])]
    return text[: ends[-1]] if ends else clipped(text, characters)


def exchange_tokens(exchanges: Sequence[Exchange]) -> int:
    """Tokens that the exchanges take in a prompt, estimated."""
    return sum(estimate_tokens(_line(exchange)) for exchange in exchanges)


def transcript(exchanges: Sequence[Exchange], tokens: int) -> str:
    """The exchanges as a prompt shows them, in about that many tokens.

    Where they take more, each gets an equal share and long answers are cut; no exchange is left out.
    Tags that the prompt uses lose their bracket, so that a text cannot close them.
    """
    shown = [_line(exchange) for exchange in exchanges]
    if shown and sum(estimate_tokens(line) for line in shown) > tokens:
        share = max(tokens // len(shown), _SHORTEST_SHARE)
        shown = [_in_tokens(line, share) for line in shown]
    return fenced("\n".join(shown))


def conversation(history: History, tokens: int) -> str:
    """What was said, for whoever answers a message that refers to it, in about that many tokens at most.

    The summary, and the exchanges in the user's words.
    """
    summary = fenced(history.summary)
    left = max(tokens - estimate_tokens(summary), 0)
    own = tuple(replace(exchange, standalone=exchange.question) for exchange in history.exchanges)
    return "\n".join(part for part in (summary, transcript(own, left)) if part)


def fenced(text: str) -> str:
    """The text without the brackets of tags that prompts of this package put around it."""
    return _TAG.sub("", text)


def _writable(text: str) -> str:
    """The text with a question mark for half a surrogate pair, which can be neither stored nor sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _said(exchange: Exchange) -> tuple[str, ...]:
    return tuple(dict.fromkeys((exchange.question, exchange.standalone, exchange.answer)))


def _line(exchange: Exchange) -> str:
    # one line each: an answer with blank lines would look like several turns
    asked, answered = (" ".join(text.split()) for text in (exchange.standalone, exchange.answer))
    return f"User: {asked}\nAssistant: {answered}"


def _in_tokens(text: str, tokens: int) -> str:
    if estimate_tokens(text) <= tokens:
        return text
    return clipped(text, len(text) * tokens // estimate_tokens(text))
