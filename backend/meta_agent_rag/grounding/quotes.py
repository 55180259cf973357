"""Are a draft's quotes really in the evidence?"""

from collections.abc import Iterable, Sequence

from .normalise import as_quoted


def is_verbatim(quote: str, texts: Iterable[str]) -> bool:
    """Does the quote stand in one of the texts, white space and typographic marks aside?

    A full stop that the writer added at the end is forgiven.
    """
    wanted = as_quoted(quote).strip('" ').rstrip('." ')
    return bool(wanted) and any(wanted in as_quoted(whole) for whole in texts)


def verbatim_share(quotes: Sequence[str], texts: Sequence[str]) -> float | None:
    """Share of the quotes that occur verbatim in the texts, 0..1; `None` where nothing was quoted."""
    if not quotes:
        return None
    return sum(is_verbatim(quote, texts) for quote in quotes) / len(quotes)
