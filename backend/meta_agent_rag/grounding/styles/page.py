"""`[The Salt Road, p.3]`: the document and the page."""

from ..citation import Citation, Style


def _written(citation: Citation) -> str:
    return f"[{citation.name}]" if citation.pages is None else f"[{citation.name}, p.{citation.pages}]"


STYLE = Style(name="page", description="the document's title, and the page if there are pages", written=_written)
