"""Finds phrases by which an answer goes beyond its documents.

The general list is `leakage.yaml`; a corpus may add its own. A phrase within a quote is attributed to the
document, not to the writer. It counts as quoted if its neighbours in the answer are those that it
has in a verified quote: the word before and the word after, or, if the quote begins or ends with the
phrase, the two words (as far as the quote has them) on the other side. A quote that consists only of the
phrase does not count.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import yaml

from ..errors import DataFileError
from ..text.normalise import unmarked

_WORD = re.compile(r"\w+")
_LONGEST_PHRASE = 200


class _Hit(NamedTuple):
    """A phrase with the one or two words on each side of it, nearest first."""

    phrase: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def leaks(answer: str, verified_quotes: Sequence[str], phrases: Sequence[str]) -> tuple[str, ...]:
    """The phrases in the answer but not in a quote, without duplicates, in order of first occurrence.

    Matches whole words; case, white space, emphasis and typographic marks are ignored. The running time
    is linear in the length of the answer, the quotes and the list, not in their product.

    >>> leaks("Based on my knowledge, he left.", [], ["based on my knowledge"])
    ('based on my knowledge',)
    >>> leaks("He left, in the novel, by sea.", ["left, in the novel, by sea"], ["in the novel"])
    ()
    """
    listed = _by_plain(tuple(phrases))
    if not listed:
        return ()
    pattern = _pattern(tuple(listed))
    excused = {excuse for quote in verified_quotes for hit in _hits(quote, pattern) for excuse in _excuses(hit)}
    found = (hit.phrase for hit in _hits(answer, pattern) if not _is_excused(hit, excused))
    return tuple(listed[plain] for plain in dict.fromkeys(found))


@lru_cache(maxsize=64)
def _by_plain(phrases: tuple[str, ...]) -> Mapping[str, str]:
    """The phrases keyed by the form that is searched for; cached, because one list serves many answers."""
    return {plain: phrase for phrase in reversed(phrases) if (plain := unmarked(phrase))}


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
    except OSError as error:
        raise DataFileError(f"The phrases {str(path)!r} cannot be read ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise DataFileError(f"The phrases {str(path)!r} are not UTF-8; save the file as UTF-8.") from None
    return tuple(dict.fromkeys([*general_phrases(), *_listed(source, str(path))]))


def _listed(source: str, name: str) -> tuple[str, ...]:
    try:
        rows = yaml.safe_load(source)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise DataFileError(f"The phrases {name!r} are not valid YAML{where}; write one '- phrase' per line.") from None
    if not isinstance(rows, list) or not rows:
        shown = repr(rows)[:80]
        raise DataFileError(f"The phrases {name!r} must be a list, not {shown}; write one '- phrase' per line.")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, str):
            raise DataFileError(f"Entry {number} of {name!r} is {repr(row)[:80]}, not text; quote it.")
        if not _WORD.search(unmarked(row)) or len(row) > _LONGEST_PHRASE:
            raise DataFileError(
                f"Entry {number} of {name!r}, {row[:80]!r}, has no word or more than {_LONGEST_PHRASE} characters; "
                "write a phrase of a few words."
            )
    return tuple(rows)


@lru_cache(maxsize=16)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the longest phrase at each word, including overlapping phrases."""
    longest_first = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?<!\w-)(?=({longest_first})(?!\w|-\w))")


def _hits(text: str, pattern: re.Pattern[str]) -> Iterator[_Hit]:
    plain = unmarked(text)
    matches = list(pattern.finditer(plain))
    words = list(_WORD.finditer(plain)) if matches else []
    starts, ends = [word.start() for word in words], [word.end() for word in words]
    for match in matches:
        first, behind = bisect_left(ends, match.start() + 1), bisect_left(starts, match.end(1))
        before = tuple(word.group() for word in reversed(words[max(0, first - 2) : first]))
        yield _Hit(match.group(1), before, tuple(word.group() for word in words[behind : behind + 2]))


def _excuses(hit: _Hit) -> Iterator[_Hit]:
    """The neighbours by which the phrase counts as quoted, given its place in a quote."""
    if hit.before and hit.after:
        yield hit._replace(before=hit.before[:1], after=hit.after[:1])
    elif hit.before or hit.after:
        yield hit


def _is_excused(hit: _Hit, excused: set[_Hit]) -> bool:
    sides = ((1, 1), (0, 2), (2, 0), (0, 1), (1, 0))
    return any(hit._replace(before=hit.before[:left], after=hit.after[:right]) in excused for left, right in sides)
