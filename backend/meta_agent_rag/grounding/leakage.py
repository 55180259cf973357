"""Finds phrases by which an answer goes beyond its documents.

The general list is `leakage.yaml`; a corpus may add its own. A phrase that a verified quote contains is the document's.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml

from ..errors import DataFileError
from ..text.normalise import unmarked

_WORD = re.compile(r"\w+")
_LONGEST_PHRASE = 200


def leaks(answer: str, verified_quotes: Sequence[str], phrases: Sequence[str]) -> tuple[str, ...]:
    """The phrases in the answer but in none of the quotes, without duplicates, in order of first occurrence.

    Matches whole words; case, white space, emphasis and typographic marks are ignored.

    >>> leaks("Based on my knowledge, he left.", [], ["based on my knowledge"])
    ('based on my knowledge',)
    >>> leaks("He left, in the novel, by sea.", ["left, in the novel, by sea"], ["in the novel"])
    ()
    """
    listed = {plain: phrase for phrase in reversed(phrases) if (plain := unmarked(phrase))}
    if not listed:
        return ()
    # the longest phrase at each word, including overlapping phrases
    longest_first = "|".join(map(re.escape, sorted(listed, key=len, reverse=True)))
    pattern = re.compile(rf"(?<!\w)(?<!\w-)(?=({longest_first})(?!\w|-\w))")
    quoted = {match[1] for quote in verified_quotes for match in pattern.finditer(unmarked(quote))}
    found = dict.fromkeys(match[1] for match in pattern.finditer(unmarked(answer)))
    return tuple(listed[plain] for plain in found if plain not in quoted)


@cache
def general_phrases() -> tuple[str, ...]:
    """The phrases of `leakage.yaml`, in order."""
    return _listed(files(__package__).joinpath("leakage.yaml").read_text("utf-8"), "leakage.yaml")


def phrases_with(path: Path | None) -> tuple[str, ...]:
    """The general phrases and those of a corpus's own list, which is a YAML list of strings.

    Raises `DataFileError`, which names the offending entry.
    """
    if path is None:
        return general_phrases()
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataFileError(f"The phrases {str(path)!r} cannot be read as UTF-8 ({error}); check the file.") from None
    return tuple(dict.fromkeys([*general_phrases(), *_listed(source, str(path))]))


def _listed(source: str, name: str) -> tuple[str, ...]:
    try:
        rows = yaml.safe_load(source)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise DataFileError(f"The phrases {name!r} are not valid YAML{where}; write one '- phrase' per line.") from None
    if not isinstance(rows, list) or not rows:
        raise DataFileError(f"The phrases {name!r} must be a list; write one '- phrase' per line.")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, str) or not _WORD.search(unmarked(row)) or len(row) > _LONGEST_PHRASE:
            raise DataFileError(
                f"Entry {number} of {name!r}, {repr(row)[:80]}, is not a text of a few words; write a phrase in quotes."
            )
    return tuple(rows)
