"""`[The Salt Road]`, for passages that are identified by their titles."""

from ..citation import Citation, Style


def _written(citation: Citation) -> str:
    return f"[{citation.name}]"


STYLE = Style(name="title", description="the document's title", written=_written)
