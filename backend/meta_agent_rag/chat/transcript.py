"""A conversation and its citations as text, for `/sources` and the file that `/save` writes."""

from collections.abc import Sequence

from ..grounding.citations import Citation
from ..wording import printable
from .coach.coach import CoachTrace
from .history import COACH, HINT
from .store import Said


def source_lines(citation: Citation) -> tuple[str, str]:
    """A citation's place in one line, and its snippet."""
    section, pages = _one_line(citation.section), citation.pages
    parts = [
        _one_line(citation.name),
        pages and f"page{'s' if '-' in pages else ''} {pages}",
        section != _one_line(citation.name) and section and f"section {section}",
        citation.span and f"characters {citation.span[0]}-{citation.span[1]}",
    ]
    return ", ".join(part for part in parts if part), _one_line(citation.snippet)


def in_short(citations: Sequence[Citation]) -> str:
    """The places of citations in one line: each document once, with its pages."""
    pages: dict[str, dict[str, None]] = {}
    for citation in citations:
        pages.setdefault(_one_line(citation.name), {}).update(dict.fromkeys([citation.pages] if citation.pages else []))
    return "; ".join(f"{title}, p. {', '.join(found)}" if found else title for title, found in pages.items())


def as_markdown(name: str, corpus: str, said: Sequence[Said], sources: Sequence[Citation]) -> str:
    """The whole conversation, with the places that its answers cite, and the citations of the last one in full.

    `said` is its transcript, small talk and notices included.
    """
    named = [{"": "plain", HINT: COACH}.get(one.mode, one.mode) for one in said]
    several = len(set(named)) > 1
    parts = [f"# Conversation {name}", f"Corpus: {corpus}"]
    if named and not several:
        parts.append(f"Mode: {named[0]}")
    for number, (one, mode) in enumerate(zip(said, named, strict=True), start=1):
        heading = f"## {number}. {_one_line(one.question)}"
        parts += [f"{heading} ({mode})" if several else heading, printable(one.answer)]
        if one.sources:
            parts.append(f"Sources: {printable('; '.join(one.sources))}")
    if sources:
        parts.append("## Sources of the last answer")
        places = enumerate(map(source_lines, sources), start=1)
        parts.append("\n".join(f"{number}. {place}\n   > {snippet}" for number, (place, snippet) in places))
    return "\n\n".join(parts) + "\n"


def _one_line(text: str | None) -> str:
    return printable(" ".join((text or "").split()))


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
