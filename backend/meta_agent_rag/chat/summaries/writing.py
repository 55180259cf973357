"""Summaries and comparisons as Markdown, for a terminal, a chat or a file."""

from collections.abc import Iterator, Sequence

from ...retrieval.corpus.catalogue import DocumentRecord
from ...wording import counted
from .comparison import Comparison
from .overview import Overview, SectionPoints, Summary
from .points import Point

_RELATIONS = {"agree": "they agree", "differ": "they differ", "related": "both mention it"}


def summary_text(summary: Summary) -> str:
    """Every document with its sections and points."""
    return "\n\n".join("\n".join(_overview(one)) for one in summary.overviews)


def comparison_text(comparison: Comparison) -> str:
    """What both documents cover, point by point, and what only one covers."""
    first, second = _name(comparison.first.document), _name(comparison.second.document)
    lines = [f"# {first} and {second}"]
    for aspect in comparison.aspects:
        lines += ["", f"## {aspect.name}: {_RELATIONS[aspect.relation]}", "", f"{first}:", *_points(aspect.first)]
        lines += ["", f"{second}:", *_points(aspect.second)]
    if not comparison.aspects:
        lines += ["", "No point of one was matched with a point of the other."]
    for name, points in ((first, comparison.only_first), (second, comparison.only_second)):
        if points:
            lines += ["", f"## Only in {name}", "", *_points(points)]
    notes = [*_notes(comparison.first), *_notes(comparison.second)]
    if comparison.uncompared:
        notes.append(f"{counted(comparison.uncompared, 'point')} did not fit into the comparison.")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _overview(one: Overview) -> Iterator[str]:
    yield f"# {_name(one.document)}"
    for number, section in enumerate(one.sections, start=1):
        yield ""
        if len(one.sections) > 1:
            yield f"## {section.heading or f'Part {number} of {len(one.sections)}'}"
            yield ""
        yield from _points(section.points) if section.points else [_why_none(section)]
    notes = list(_notes(one))
    if notes:
        yield ""
        yield from notes


def _points(points: Sequence[Point]) -> list[str]:
    return [f"- {point.text}" for point in points]


def _why_none(section: SectionPoints) -> str:
    if section.failure:
        return f"This section could not be summarised: {section.failure}"
    return "No point of this section could be confirmed." if section.invented else "This section contains nothing new."


def _notes(one: Overview) -> Iterator[str]:
    name = _name(one.document)
    if not one.sections:
        yield f"{name} has no text that may be shown to a model."
    if invented := sum(section.invented for section in one.sections):
        yield f"{name}: {counted(invented, 'point')} left out because their quotes are not in the document."
    if one.left_out:
        yield f"{name}: {counted(one.left_out, 'passage')} left out because they read like orders to a language model."


def _name(document: DocumentRecord) -> str:
    return " ".join(document.title.split()) or document.source
