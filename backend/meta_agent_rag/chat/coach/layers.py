"""The coach's prompt: a system message in four layers, then the latest messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...llm.messages import Message
from ...prompts import phrase, prompt
from ...prompts.fencing import fenced
from ..history import Exchange, History, clipped_at_sentence
from .levels import Level

LATEST_MESSAGES = 10
"""The number of coaching messages sent verbatim; older ones are summarised."""

_LONGEST_LINE = 160


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of the system message by name, for the trace."""

    name: str
    text: str


def system_layers(
    level: Level, history: History, passages: str, emergency: str, folder: Path | None
) -> tuple[Layer, ...]:
    """Style, summary of the past, evidence and, only in a deadlock, the emergency override, in this order.

    `passages` is the packed evidence, `emergency` the reason why the coach may give a hint, or empty.
    """
    limit = level.hint_limit if emergency else level.limit
    style = prompt("coach", folder).text(style=level.style, limit=limit)
    past = prompt("coach_past", folder).text(past=summary_of(history) or phrase("nothing_yet"))
    evidence = prompt("coach_evidence", folder).text(passages=passages or phrase("no_passage"))
    layers = [Layer(name="style", text=style), Layer(name="past", text=past), Layer(name="evidence", text=evidence)]
    if emergency:
        override = prompt("coach_emergency", folder).text(reason=emergency, limit=limit)
        layers.append(Layer(name="emergency", text=override))
    return tuple(layers)


def coach_messages(layers: Sequence[Layer], history: History, message: str) -> tuple[Message, ...]:
    """The messages of a call: the layers as one system message, the latest coaching turns, the learner's message."""
    system = "\n\n".join(layer.text for layer in layers)
    replayed = [part for exchange in _replayed(history) for part in _both_sides(exchange)]
    return (Message(role="system", content=system), *replayed, Message(role="user", content=message))


def summary_of(history: History) -> str:
    """Everything that is not replayed: the running summary, then one line per exchange, made without a call.

    A teacher's explanation is reduced to a line, so that the coach does not continue explaining.
    """
    replayed = set(_replayed(history))
    lines = [_line(exchange) for exchange in history.exchanges if exchange not in replayed]
    return fenced("\n".join([*([history.summary] if history.summary else []), *lines]))


def _replayed(history: History) -> tuple[Exchange, ...]:
    """The latest exchanges of the current coaching, i.e. since the last turn in another mode."""
    latest: list[Exchange] = []
    for exchange in reversed(history.exchanges):
        if not exchange.is_coaching or len(latest) == LATEST_MESSAGES // 2:
            break
        latest.insert(0, exchange)
    return tuple(latest)


def _both_sides(exchange: Exchange) -> tuple[Message, Message]:
    return (Message(role="user", content=exchange.question), Message(role="assistant", content=exchange.answer))


def _line(exchange: Exchange) -> str:
    asked = clipped_at_sentence(" ".join(exchange.standalone.split()), _LONGEST_LINE)
    answered = exchange.short_answer or exchange.answer
    return f"- {asked} - {clipped_at_sentence(' '.join(answered.split()), _LONGEST_LINE)}"
