"""`[Source: Early life (Page 3) - "..."]`: where it stands, and what stands there."""

from ..citation import Citation, Style


def _written(citation: Citation) -> str:
    section = " ".join((citation.section or "").split()) or citation.name
    page = "" if citation.pages is None else f" (Page {citation.pages})"
    return f'[Source: {section}{page} - "{citation.snippet}"]'


STYLE = Style(
    name="source",
    description="section (or title), page, and an excerpt of 30 to 50 words",
    written=_written,
)
