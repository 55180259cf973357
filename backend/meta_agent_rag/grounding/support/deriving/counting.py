"""Numbers of a claim that count the entries of a list, what they number, or the rows of a table."""

import re
from collections.abc import Iterator, Sequence

from ....text.figures import Figure
from ....text.words import stop_words
from ..statement import Statement

_LIST_BREAK = re.compile(r"\s*(?:,|;|\u3001|\uff0c|\band\b|\bund\b|\bet\b|\by\b|\be\b|\bor\b|\boder\b)\s*")
_ADVERBS = frozenset({"also", "even", "once", "twice", "sometimes", "too", "finally", "lastly", "of", "course"})
_ENGLISH = frozenset({"a", "an", "the", "one"})
_LONGEST_ENTRY = 4
_MOST_COUNTED = 50


def counted(
    figure: Figure, named: Sequence[Statement], table: Sequence[Statement] = (), *, freely: bool = False
) -> str:
    """The entries of a list, or the labels of the rows of `table`, that are as many; empty if there is none.

    With `freely`, the entries may be of any length, or a list within one cell. A row itself, or a header, is no list.
    """
    wanted = int(figure.number)
    if wanted != figure.number or not 2 <= wanted <= _MOST_COUNTED:
        return ""
    if wanted == len(table):
        return f"{', '.join(row.label for row in table)}: {wanted}"
    for stretch in (one for statement in named if freely for one in _stretches_or_cells(statement)):
        if len(entries := [entry for entry in _LIST_BREAK.split(stretch) if _says_something(entry)]) == wanted:
            return f"{'; '.join(entries)}: {wanted}"
    for statement in (one for one in named if not one.in_table):
        for amounts in _amounts(statement):
            if sum(amounts) == wanted:
                return f"{' + '.join(map(str, amounts))} = {wanted}"
        for entries in _lists(statement.text):
            alike = len({any(map(str.isdigit, entry)) for entry in entries}) == 1
            if len(entries) == wanted and alike:
                bare = [
                    next((word for word in entry.split() if any(map(str.isdigit, word))), entry) for entry in entries
                ]
                return f"{', '.join(bare)}: {wanted}"
    return ""


def _says_something(entry: str) -> bool:
    """Is it more than an adverb between two commas, such as "once"?"""
    return any(word not in stop_words() and word not in _ADVERBS for word in entry.lower().split())


def _stretches(text: str) -> list[str]:
    """The parts of a text between the signs that no list extends over."""
    return [stretch.strip() for stretch in re.split(r"[:.!?\n|](?=\s|$)", text)]


def _stretches_or_cells(statement: Statement) -> list[str]:
    if not statement.in_table:
        return _stretches(statement.text)
    return [value for _, equals, value in (cell.partition(" = ") for cell in statement.text.split("; ")) if equals]


def _amounts(statement: Statement) -> Iterator[list[int]]:
    """What its lists number: 4, 2 and 1 in "got 4 cups, 2 plates and a spoon"."""
    articles = statement.grammar.articles
    for stretch in _stretches(statement.text):
        run: list[int] = []
        for entry in _LIST_BREAK.split(stretch):
            words = entry.split()
            before = [_number(word, articles) for word in (words[-_LONGEST_ENTRY:] if not run else words[:1])]
            number = next((one for one in reversed(before) if one), 0)
            if number:
                run.append(number)
                continue
            if len(run) > 1:
                yield run
            run = []
        if len(run) > 1:
            yield run


def _number(word: str, articles: frozenset[str]) -> int:
    return int(word) if word.isdecimal() else int(word.lower() in articles | _ENGLISH)


def _lists(text: str) -> Iterator[list[str]]:
    """The lists in a text: runs of short entries, with and without the last words before them."""
    for stretch in _stretches(text):
        run: list[str] = []
        for number, entry in enumerate(_LIST_BREAK.split(stretch)):
            words = entry.split()
            if words and (len(words) <= _LONGEST_ENTRY or number == 0):
                run.append(entry if len(words) <= _LONGEST_ENTRY else words[-1])
                continue
            if len(run) > 1:
                yield from (run, run[1:])
            run = [words[-1]] if words else []
        if len(run) > 1:
            yield from (run, run[1:])
