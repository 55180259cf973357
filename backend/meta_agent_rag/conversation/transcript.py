"""A conversation and its citations as text: for `/sources`, and for the file that `/save` writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..wording import printable
from .history import History
from .socratic.coach import CoachTrace


def source_lines(source: Mapping[str, Any]) -> tuple[str, str]:
    """A kept citation (see `conversation.study.plain_citation`): its place in one line, and its snippet."""
    title = _one_line(source.get("title")) or _one_line(source.get("doc_id")) or "?"
    parts = [title, _pages(source), _section(source, title), _span(source)]
    return ", ".join(part for part in parts if part), _one_line(source.get("snippet"))


def as_markdown(name: str, corpus: str, history: History, sources: Sequence[Mapping[str, Any]]) -> str:
    """What is remembered of a conversation, with the citations of its last answer."""
    parts = [f"# Conversation {name}", f"Corpus: {corpus}"]
    if history.summary:
        parts += ["## Earlier, in short", printable(history.summary)]
    for exchange in history.exchanges:
        parts += [f"## {exchange.turn}. {_one_line(exchange.question)}", printable(exchange.answer)]
    if sources:
        parts.append("## Sources of the last answer")
        places = enumerate(map(source_lines, sources), start=1)
        parts.append("\n".join(f"{number}. {place}\n   > {snippet}" for number, (place, snippet) in places))
    return "\n\n".join(parts) + "\n"


def _pages(source: Mapping[str, Any]) -> str:
    first, last = source.get("page"), source.get("last_page")
    if first is None:
        return ""
    return f"page {first}" if last in {None, first} else f"pages {first}-{last}"


def _section(source: Mapping[str, Any], title: str) -> str:
    section = _one_line(source.get("section"))
    return f"section {section}" if section and section != title else ""


def _span(source: Mapping[str, Any]) -> str:
    span = source.get("span")
    return f"characters {span[0]}-{span[1]}" if span else ""


def _one_line(text: object) -> str:
    return "" if text is None else printable(" ".join(str(text).split()))


def coaching_lines(trace: CoachTrace) -> list[str]:
    """How the coach's reply came about, a line each: hooks before, drafts with what they broke, the outcome."""
    rulings = [
        f"{name}: {ruling.refusal or ruling.emergency or ruling.detail or 'passes'}" for name, ruling in trace.rulings
    ]
    drafts = [
        f"draft {number}: {attempt.text} ({attempt.finding.violation or 'keeps the rules'})"
        for number, attempt in enumerate(trace.attempts, start=1)
    ]
    layers = [f"layer {layer.name}: {layer.text}" for layer in trace.layers]
    return [*layers, *rulings, *drafts, f"outcome: {trace.outcome}"]
