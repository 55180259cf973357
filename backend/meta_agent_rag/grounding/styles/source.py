"""`[Source: The Salt Road, Early life (Page 3) - "..."]`: the place, and an excerpt from it."""

from ..citation import Citation, Style


def _written(citation: Citation) -> str:
    section = " ".join((citation.section or "").split())
    place = citation.name if section in {"", citation.name} else f"{citation.name}, {section}"
    page = "" if citation.pages is None else f" (Page {citation.pages})"
    return f'[Source: {place}{page} - "{" ".join(citation.snippet.split())}"]'


STYLE = Style(
    name="source",
    description="title, section, page, and an excerpt of 30 to 50 words",
    written=_written,
)
