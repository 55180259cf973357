"""Sources, uploads and the coach's trace as HTML, with all text from documents and models escaped."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import PurePath

from ...chat.session import GroundedReply, Turn, plain_citation
from ...chat.transcript import source_lines
from ...ingestion.report import FileOutcome, IngestProgress, IngestReport
from ...wording import counted
from ..runs.html import quiet

_TAKEN: Mapping[str, str] = {"added": "added", "replaced": "replaced", "moved": "moved", "unchanged": "known already"}


def sources(turn: Turn | None, notes: Sequence[str] = ()) -> str:
    """Confidence and citations of an answer, or why there are none."""
    notes_html = "".join(map(quiet, notes))
    if turn is None or not isinstance(turn.reply, GroundedReply):
        return notes_html or quiet("The sources of an answer appear here.")
    answer = turn.reply.grounded
    if answer.refused is not None:
        return f"{quiet('No citations: the documents do not support an answer.')}{notes_html}"
    items = "".join(_source(*source_lines(plain_citation(citation))) for citation in answer.citations)
    sure = ""
    if answer.confidence is not None:
        said = f"Confidence {answer.confidence.level}, {answer.confidence.score:.2f} of 1"
        sure = meter(said, answer.confidence.score)
    return f'{sure}<ol class="m-sources">{items}</ol>{notes_html}'


def meter(label: str, share: float, kind: str = "") -> str:
    """A bar with a label; `share` is 0..1."""
    width = 100 * min(1.0, max(0.0, share))
    return (
        f'<div class="m-meter {kind}"><span>{escape(label)}</span>'
        f'<div role="img" aria-label="{escape(label)}"><span style="width:{width:.0f}%"></span></div></div>'
    )


def reading(progress: IngestProgress) -> str:
    """The progress of an upload."""
    files = f"Reading file {min(progress.files + 1, progress.of_files)} of {progress.of_files}"
    passages = (
        f", {progress.passages} of {counted(progress.of_passages, 'passage')} encoded" if progress.of_passages else ""
    )
    return f'<p role="status">{files}{passages}.</p>'


def taken(report: IngestReport) -> str:
    """The result for each file of an upload."""
    lines = "".join(f"<li>{_fate(outcome)}</li>" for outcome in report.outcomes)
    return f'<ul class="m-files" role="status">{lines}</ul>'


def kept(files: Sequence[str]) -> str:
    """The searchable files after an upload was stopped or a conversation restarted."""
    names = ", ".join(f"<strong>{escape(name)}</strong>" for name in files)
    return f'<p class="m-note" role="status">Your documents: {names or "none"}.</p>'


def _fate(outcome: FileOutcome) -> str:
    name = f"<strong>{escape(PurePath(outcome.source).name)}</strong>"
    reason = _by_name(outcome.reason or "")
    if outcome.status not in _TAKEN:
        return f'{name}: <span class="m-refused">rejected</span>, {escape(reason)}'
    passages = f", {counted(outcome.passages, 'passage')}" if outcome.passages else ""
    return f"{name}: {_TAKEN[outcome.status]}{passages}{escape(f' ({reason})' if reason else '')}"


def _by_name(reason: str) -> str:
    """A reason in which local files are identified only by name."""
    words = (PurePath(word.strip("'")).name if word.startswith("'/") else word for word in reason.split(" "))
    return " ".join(words)


def _source(place: str, snippet: str) -> str:
    return f"<li><strong>{escape(place)}</strong><blockquote>{escape(snippet)}</blockquote></li>"
