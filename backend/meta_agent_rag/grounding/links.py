"""Takes out what a page would load or follow: pictures, and addresses that no passage holds.

An address that a model makes up may carry what it has read to whoever made it write so.
"""

import re
from collections.abc import Sequence

from .excision import without

_ADDRESS = r"(?:(?:https?|ftp|file|data|javascript|mailto)\s?:|www\.)[^\s<>\"'`\])]+"
_PICTURE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?|<\s*(?:img|iframe|object|embed|script)\b[^>]*>?", re.I)
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(\s*<?([^)\s>]*[:/.#][^)\s>]*)>?[^)]*\)")
_BARE = re.compile(_ADDRESS, re.IGNORECASE)
_FULL_STOP = ".,;:!?"


def without_links(text: str, sources: Sequence[str]) -> str:
    """The text without pictures, and without addresses that stand in none of the sources.

    Of a link its label stays, in brackets where it is the number of a passage.

    >>> without_links("See [the list](https://evil.example/?q=4711), on https://a.example/b.", ["At https://a.example/b"])
    'See the list, on https://a.example/b.'
    """
    text = without(text, [match.span() for match in _PICTURE.finditer(text)])
    text = _LINK.sub(lambda link: link[0] if _held(link[2], sources) else _label(link[1]), text)
    bare = [(match.start(), match.start() + len(match[0].rstrip(_FULL_STOP))) for match in _BARE.finditer(text)]
    return without(text, [(start, end) for start, end in bare if not _held(text[start:end], sources)])


def _label(label: str) -> str:
    return f"[{label}]" if label.strip().isdigit() else label


def _held(address: str, sources: Sequence[str]) -> bool:
    return bool(address) and any(address in source for source in sources)
