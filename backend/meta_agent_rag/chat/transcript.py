"""A conversation and its citations as text, for `/sources` and the file that `/save` writes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..wording import printable
from .coach.coach import CoachTrace
from .history import COACH, HINT
from .store import Said


def source_lines(source: Mapping[str, Any]) -> tuple[str, str]:
    """A stored citation (see `chat.session.plain_citation`): its place in one line, and its snippet."""
    title = _one_line(source.get("title")) or _one_line(source.get("doc_id")) or "?"
    parts = [title, _pages(source), _section(source, title), _span(source)]
    return ", ".join(part for part in parts if part), _one_line(source.get("snippet"))


def in_short(sources: Sequence[Mapping[str, Any]]) -> str:
    """The places of stored citations in one line: each document once, with its pages."""
    pages: dict[str, list[str]] = {}
    for source in sources:
        title = _one_line(source.get("title")) or _one_line(source.get("doc_id")) or "?"
        page = _pages(source).partition(" ")[2]
        pages.setdefault(title, []).extend([page] if page else [])
    return "; ".join(
        f"{title}, p. {', '.join(dict.fromkeys(found))}" if found else title for title, found in pages.items()
    )


def as_markdown(name: str, corpus: str, said: Sequence[Said], sources: Sequence[Mapping[str, Any]]) -> str:
    """The whole conversation, with the places that its answers cite, and the citations of the last one in full.

    `said` is its transcript, small talk and notices included.
    """
    modes = {_mode(one) for one in said}
    parts = [f"# Conversation {name}", f"Corpus: {corpus}", *(f"Mode: {mode}" for mode in modes if len(modes) == 1)]
    for number, one in enumerate(said, start=1):
        mode = f" ({_mode(one)})" if len(modes) > 1 else ""
        parts += [f"## {number}. {_one_line(one.question)}{mode}", printable(one.answer)]
        if one.sources:
            parts.append(f"Sources: {printable('; '.join(one.sources))}")
    if sources:
        parts.append("## Sources of the last answer")
        places = enumerate(map(source_lines, sources), start=1)
        parts.append("\n".join(f"{number}. {place}\n   > {snippet}" for number, (place, snippet) in places))
    return "\n\n".join(parts) + "\n"


def _mode(said: Said) -> str:
    return {"": "plain", HINT: COACH}.get(said.mode, said.mode)


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
    """How the coach's reply was produced, one step per line: pre-hooks, drafts with their violations, the outcome."""
    rulings = [
        f"{name}: {ruling.refusal or ruling.emergency or ruling.detail or 'passes'}" for name, ruling in trace.rulings
    ]
    drafts = [
        f"draft {number}: {attempt.text} ({attempt.finding.violation or 'follows the rules'})"
        for number, attempt in enumerate(trace.attempts, start=1)
    ]
    layers = [f"layer {layer.name}: {layer.text}" for layer in trace.layers]
    return [*layers, *rulings, *drafts, f"outcome: {trace.outcome}"]
