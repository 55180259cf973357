"""A parsed sentence: what it mentions, in order, with its figures, clauses and negations."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from ...text.dates import weekday_of
from ...text.figures import Figure, figures, in_digits
from ...text.figures.figure import same_figure
from ...text.figures.lexicon import alternation, months, weekdays
from ...text.language import language_of
from ...text.tokens import Token, tokens
from .words import Grammar, grammar, openers

_BREAK = re.compile(r"[,;:()\[\]|\n\u2013\u2014\u3001\u3002\uff0c\uff1b\uff1a\u300c\u300d]| - ")
_OPENER = re.compile(r"^\s*([^\W\d_]+)\s*(?:[,.:;!\u3001\u3002\uff0c\u2014\u2013]\s*|-\s+|$)")
_NOT_WRITTEN_OUT = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_UNTIL = re.compile(
    r"\s*(?:to|until|till|through|bis(?: zum)?|au|\u00e0|jusqu'(?:au|en|\u00e0)|al|a|fino a|hasta(?: el)?|at\u00e9"
    r"|tot(?: en met)?|-|\u2013|\u2014)\s*",
    re.IGNORECASE,
)
_PART_OF_A_DAY = "(?:voor|vor|nach|na)?(?:morgen|fr\u00fch|ochtend|middag|mittag|abend|avond|nacht)"
"""Joined to a weekday in German and Dutch."""
_WITHOUT_CASE = frozenset({"ja", "zh", "ko", "th", "ar", "he"})
_NEGATES_WHAT_PRECEDES = frozenset({"ja", "ko"})
FREE_ORDER = frozenset({"de", "ru", "uk", "pl", "cs", "fi", "hu", "el", "tr"})
"""Languages in which the object may come first, so that word order says less."""
_CAPITALISED_MONTHS = frozenset({"en", "de"})
_SCOPE = 1
_ALSO_FROM = frozenset({"von", "vom", "durch", "da", "dal", "dalla"})
"""Also mean "from": only before a name do they mark the agent."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A content word or a figure; `clause` counts from 0, `before` is the preposition in front of it.

    `particle` is what follows it in Japanese; `is_bare` marks a capitalised word without an article before it.
    """

    stem: str
    written: str
    clause: int
    figure: Figure | None = None
    is_name: bool = False
    is_bare: bool = False
    negated: bool = False
    before: str = ""
    particle: str = ""

    @property
    def is_value(self) -> bool:
        """Is it a figure or a name, of which a sentence may give several?"""
        return self.figure is not None or self.is_name

    def same_as(self, other: "Item") -> bool:
        """Do both refer to the same thing?"""
        if self.figure is not None and other.figure is not None:
            if self.figure.is_date and other.figure.date is not None and self.figure.date is not None:
                one, two = self.figure.date, other.figure.date
                pairs = ((one.year, two.year), (one.month, two.month), (one.day, two.day))
                return all(0 in pair or pair[0] == pair[1] for pair in pairs)
            return same_figure(self.figure, other.figure) or same_figure(other.figure, self.figure)
        same = self.stem == other.stem or (self.is_name and self.written.lower() == other.written.lower())
        return self.figure is None and other.figure is None and same


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A parsed sentence; `text` has its number words in digits, `label` is the first cell of a table's row.

    `in_table` is also true of a header, which has no label.
    """

    text: str
    language: str
    items: tuple[Item, ...]
    hedges: frozenset[tuple[str, int]]
    negations: int
    implicit: bool
    label: str = ""
    in_table: bool = False

    @property
    def grammar(self) -> Grammar:
        """The grammatical words of its language."""
        return grammar(self.language)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures in order."""
        return tuple(item.figure for item in self.items if item.figure is not None)

    def hedged(self, claim: "Statement") -> frozenset[str]:
        """The stems that weaken or condition the clauses that share a subject with the claim."""
        clauses = {item.clause for item in self.items if claim.holds(item)}
        return frozenset(stem for stem, clause in self.hedges if clause in clauses)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its words."""
        return frozenset(item.stem for item in self.items if item.figure is None)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(item.written.lower() for item in self.items if item.figure is None)

    @cached_property
    def _months(self) -> frozenset[int]:
        """The months that it names, and those between two: August in "from July to 5 September"."""
        dated = [one for one in self.figures if one.date is not None and one.date.month]
        named = [(one.start, one.end, one.date.month) for one in dated if one.date is not None]
        for match in _month().finditer(self.text):
            if match[0][0].isupper() or self.language not in _CAPITALISED_MONTHS:  # "may" is also a verb
                named.append((match.start(), match.end(), months()[match[0].lower()]))
        named.sort()
        found = {month for _, _, month in named}
        for (_, end, first), (start, _, last) in pairwise(named):
            if _UNTIL.fullmatch(self.text[end:start]):
                found |= {(first + more - 1) % 12 + 1 for more in range((last - first) % 12)}
        return frozenset(found)

    @cached_property
    def days_named(self) -> frozenset[int]:
        """The days of the week that it names, and those between two: Tuesday in "Monday to Thursday"."""
        named = [(match, weekdays()[match[1].lower()]) for match in _weekday().finditer(self.text)]
        found = {day for _, day in named}
        for (one, first), (other, last) in pairwise(named):
            if _UNTIL.fullmatch(self.text[one.end() : other.start()]):
                found |= {(first + more) % 7 for more in range((last - first) % 7)}
        return frozenset(found)

    def holds(self, item: Item) -> bool:
        """Does the sentence mention it?"""
        if item.figure is not None:
            return any(item.same_as(own) for own in self.items)
        # as `same_as`, for all words at once
        if item.stem in self.stems or (item.is_name and item.written.lower() in self._words):
            return True
        if not item.is_name:
            return False
        name = item.written.lower()
        day = weekdays().get(name, weekdays().get(name.removesuffix("s")))
        return months().get(name) in self._months or day in self.days_named

    def dates(self, item: Item) -> bool:
        """Is it the day of the week of one of the statement's own dates: Friday, in "Friday 11 September 2026"?"""
        day = weekdays().get(item.written.lower())
        whole = [one.date for one in self.figures if one.date is not None and one.date.year > 0 and one.date.day]
        return day is not None and any(weekday_of(one) == day for one in whole)

    def is_passive(self, place: int) -> bool:
        """Is the verb at a place in the passive voice: does one of the next items name the agent?"""
        own = self.items[place]
        near = self.items[place + 1 : place + 3] if self.language == "en" else self.clause(own.clause)
        named = [item for item in near if item.clause == own.clause and item.before in self.grammar.agents]
        return any(item.is_name or item.is_bare or item.before not in _ALSO_FROM for item in named)

    def clause(self, number: int) -> tuple[Item, ...]:
        """The items of a clause."""
        return tuple(item for item in self.items if item.clause == number)

    @property
    def clauses(self) -> tuple[tuple[Item, ...], ...]:
        """Its clauses in order."""
        return tuple(self.clause(number) for number in dict.fromkeys(item.clause for item in self.items))


@lru_cache(maxsize=2048)
def read(text: str, language: str = "", label: str = "", *, in_table: bool = False) -> Statement:
    """Parse a sentence; its language is guessed unless it is given. An initial yes or no is removed."""
    code = language or language_of(text)
    opener = _OPENER.match(text)
    if opener and opener[1].lower() in openers():
        text = text[opener.end() :]
    plain = in_digits(_NOT_WRITTEN_OUT.sub(" not", text), code)
    known = grammar(code)
    words = tokens(plain, code)
    lower = [word.written.lower() for word in words]
    items, hedges = _items(plain, words, code, known)
    return Statement(
        text=plain,
        language=code,
        items=items if label else _with_bare_values_joined(items),
        hedges=hedges,
        negations=sum(word in known.negations for word in lower),
        implicit=any(word.stem in known.implicit for word in words),
        label=label,
        in_table=in_table or bool(label),
    )


@dataclass
class _Reader:
    """Reads the words of a sentence, keeping the result and the context for the next word."""

    language: str
    known: Grammar
    items: list[Item] = field(default_factory=list)
    clause: int = 0
    before: str = ""
    negating: int = 0
    hedges: set[tuple[str, int]] = field(default_factory=set)

    def new_clause(self) -> None:
        if self.items and self.items[-1].clause == self.clause:
            self.clause += 1
        self.negating = 0

    def add(
        self, written: str, stem: str, *, figure: Figure | None = None, is_name: bool = False, is_bare: bool = False
    ) -> None:
        run = is_name and self.items and self.items[-1].is_name and self.items[-1].clause == self.clause
        self.items.append(
            Item(
                stem=stem,
                written=written,
                clause=self.clause,
                figure=figure,
                is_name=is_name,
                is_bare=is_bare,
                negated=self.negating > 0,
                before=self.before or (self.items[-1].before if run else ""),
            )
        )
        self.before, self.negating = "", max(0, self.negating - 1)

    def grammatical(self, word: Token, following: Sequence[Token]) -> bool:
        """Handle a purely grammatical word; `False` if it is a content word."""
        lower = word.written.lower()
        if word.stem in self.known.hedges:
            clause = self.clause + 1 if lower in self.known.boundaries and self.items else self.clause
            self.hedges.add((word.stem, clause))
        if lower in self.known.negations:
            if self.language in _NEGATES_WHAT_PRECEDES or not _more_follows(following, self.known):
                self.items[-1:] = [replace(item, negated=True) for item in self.items[-1:]]
            else:
                self.negating = _SCOPE
            return True
        if lower in self.known.boundaries:
            self.new_clause()
        if word.is_particle:
            self.items[-1:] = [replace(item, particle=item.particle or lower) for item in self.items[-1:]]
            return True
        if lower in self.known.prepositions:
            self.before = lower
        return lower in self.known.function


def _items(
    text: str, words: Sequence[Token], language: str, known: Grammar
) -> tuple[tuple[Item, ...], frozenset[tuple[str, int]]]:
    """The items of a text, and its hedges with the clauses that contain them."""
    reader = _Reader(language=language, known=known)
    found = list(figures(text, language))
    dated = [language == "de" and _is_of_a_date(word, found) for word in words]
    capitals = [word.written[:1].isupper() and not date for word, date in zip(words, dated, strict=True)]
    position = 0
    for place, word in enumerate(words):
        if _BREAK.search(text[position : word.start]):
            reader.new_clause()
        position = max(position, word.end)
        figure = next((one for one in found if one.start < word.end and word.start < one.end), None)
        if figure is not None:
            if figure.end > position or word.start <= figure.start:
                position = max(position, figure.end)
            if not any(item.figure is figure for item in reader.items):
                reader.add(figure.written, figure.written, figure=figure)
        elif not reader.grammatical(word, words[place + 1 :]):
            light = word.written.lower() in known.light
            name = _is_name(place, words, capitals, language, light)
            behind_article = place > 0 and words[place - 1].written.lower() in known.articles
            reader.add(word.written, word.stem, is_name=name, is_bare=capitals[place] and not behind_article)
    return tuple(reader.items), frozenset(reader.hedges)


def _is_of_a_date(word: Token, found: Sequence[Figure]) -> bool:
    """Is it a month, or part of a figure? In German, neither makes a name of the noun beside it: "Ende Juli 2025"."""
    return word.written.lower() in months() or any(one.start < word.end and word.start < one.end for one in found)


def _with_bare_values_joined(items: Sequence[Item]) -> tuple[Item, ...]:
    """A clause that consists of figures belongs to the one before it: "who breaks it, 400"."""
    worded = {item.clause for item in items if item.figure is None}
    joined: list[Item] = []
    for item in items:
        before = joined[-1].clause if joined else item.clause
        alone = item.clause not in worded and joined
        joined.append(replace(item, clause=before) if alone else item)
    return tuple(joined)


@cache
def _month() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternation(months())})\b", re.IGNORECASE)


@cache
def _weekday() -> re.Pattern[str]:
    letter = r"[^\W_\u3040-\uffff]"  # of an alphabet
    return re.compile(
        rf"(?<!{letter})({alternation(weekdays())})(?:s\b|(?!{letter})|(?={_PART_OF_A_DAY}))", re.IGNORECASE
    )


def _more_follows(words: Sequence[Token], known: Grammar) -> bool:
    return any(word.written.lower() not in known.function | known.negations for word in words)


def _is_name(place: int, words: Sequence[Token], capitals: Sequence[bool], language: str, light: bool) -> bool:
    """A capitalised word; at the beginning, and in German, only next to another one."""
    if language in _WITHOUT_CASE or not capitals[place] or light:
        return False
    known = grammar(language)
    if place == 0 and (not known.read or words[0].written.lower() in known.function | known.telling):
        return False
    beside = any(capitals[other] for other in (place - 1, place + 1) if 0 <= other < len(words))
    if language == "de":
        return beside and (place > 1 or (place + 1 < len(words) and capitals[place + 1]))
    return place > 0 or (place + 1 < len(words) and capitals[place + 1]) or words[place].written.isupper()
