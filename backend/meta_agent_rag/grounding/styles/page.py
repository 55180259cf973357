"""`[p.3]`, for documents with pages."""

from ..citation import Citation, Style


def _written(citation: Citation) -> str:
    return f"[{citation.name}]" if citation.pages is None else f"[p.{citation.pages}]"


STYLE = Style(name="page", description="the page, or the title if there are no pages", written=_written)
