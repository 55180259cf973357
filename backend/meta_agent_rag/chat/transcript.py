"""A conversation and its citations as text, for `/sources` and the file that `/save` writes."""

from collections.abc import Sequence

from ..grounding.citations import Citation
from ..wording import printable
from .coach.coach import CoachTrace
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
    """The cited documents with their pages, each place once."""
    places = (f"{one.name}, p. {one.pages}" if one.pages else one.name for one in citations)
    return "; ".join(dict.fromkeys(places))


def as_markdown(name: str, corpus: str, said: Sequence[Said], sources: Sequence[Citation]) -> str:
    """A whole conversation; `said` is its transcript, small talk and notices included."""
    parts = [f"# Conversation {name}", f"Corpus: {corpus}"]
    for number, one in enumerate(said, start=1):
        parts += [f"## {number}. {_one_line(one.question)}", printable(one.answer)]
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
    layers = [f"layer {name}: {text}" for name, text in trace.layers.items()]
    return [*layers, *rulings, *drafts, f"outcome: {trace.outcome}"]
