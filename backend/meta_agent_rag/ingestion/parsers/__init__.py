"""Parsers, one file a format; a file that exports `PARSER` is found by itself."""

from collections.abc import Iterable
from functools import cache

from ...discovery import exported
from ...errors import DuplicateNameError
from .parser import File, Parser

__all__ = ["File", "Parser", "by_priority", "discover_parsers", "known_suffixes"]


@cache
def discover_parsers() -> tuple[Parser, ...]:
    """Every parser of this folder, in the order of asking; loads no format's library. Raises `DuplicateNameError`."""
    return by_priority(exported(__name__, "PARSER", Parser))


def known_suffixes() -> tuple[str, ...]:
    """How names of files end that some parser reads, sorted, each with its dot."""
    return tuple(sorted({suffix for parser in discover_parsers() for suffix in parser.suffixes}))


def by_priority(parsers: Iterable[Parser]) -> tuple[Parser, ...]:
    """Parsers in the order of asking; a kind that comes twice raises `DuplicateNameError`."""
    found: dict[str, Parser] = {}
    for parser in parsers:
        if parser.kind in found:
            raise DuplicateNameError(f"Two parsers are for the kind {parser.kind!r}; rename one of them.")
        found[parser.kind] = parser
    return tuple(sorted(found.values(), key=lambda parser: (parser.priority, parser.kind)))
