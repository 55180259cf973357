"""Full names in a question that its passages do not contain.

Without a passage about the person or thing asked about, a small model answers from one about a namesake: asked about
"Bernard of Niemodlin", it tells of "Bernard of Thiron". Developed on every second question of the HotpotQA,
2WikiMultiHopQA and MuSiQue files, with and without their supporting passages, and on questions about made documents;
measured on others (docs/decisions/031-how-grounded-answers-are-measured.md).
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import pairwise
from typing import TypeAlias

from babel import Locale

from ..retrieval.passage import Passage
from ..text.language import language_of
from ..text.names import unqualified, words
from ..text.words import stop_words
from .support.neighbours import words_of

_PARTICLES = frozenset(
    {
        *("al", "at", "da", "de", "del", "der", "di", "du", "for", "ibn", "in", "la", "le", "of", "on", "the", "to"),
        *("van", "von"),
    }
)
_PARTICLE = rf"(?i:{'|'.join(sorted(_PARTICLES))})"
_UPPER = r"[^\W\d_a-z\u00df-\u00ff]"
_CAPITAL = rf"(?:(?:{_UPPER}|St|Dr|Mr|Mrs|Ms|Jr|Sr|Prof)\.|{_UPPER}[\w&-]*(?:['\u2019](?!s\b)\w+)*)"
_RUN = re.compile(rf"(?<!\w){_CAPITAL}(?:\s+(?:{_PARTICLE}\s+)*{_CAPITAL})*")
_ENDS = re.compile(r"\([^)]*\)|['\u2019][sS]\b|(?<=[^\W\d_A-Z]{2})[.!?](?=\s)|\s(?:[Aa]nd|[Oo]r|&)(?=\s)")
_NO_NAME_AFTER = re.compile(r"(?:\b(?:the|an?|am|i['\u2019]m|my name is)|\d)\s+$", re.IGNORECASE)
"""Before a description ("the Mining Board"), the user's own name, and a unit."""
_PARTS = frozenset(
    {
        *("annex", "appendix", "article", "chapter", "clause", "figure", "level", "page", "paragraph", "part", "phase"),
        *("schedule", "section", "step", "table", "version", "volume"),
    }
)
"""What documents number: "Chapter Two" is not a name."""
_FORMS_OF_ADDRESS = frozenset({"doctor", "dr", "jr", "miss", "mr", "mrs", "ms", "prof", "professor", "sir", "sr"})
_TYPO = 0.85
_LONG = 6
"""Letters from which a word may be misspelt."""
_MANY = 4
"""Words from which a name may have one that is misspelt or left out."""
_FEWEST_INITIALS = 3

Name: TypeAlias = tuple[str, ...]
"""The words of a name in order, with its particles, without forms of address and initials."""


def unknown_names(question: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The full names in an English question that no passage contains, as the question writes them.

    A passage contains a name if it contains all of its words (all but one of four or more), in any order and with at
    most small misspellings, if the name contains the passage's title, or if the passage mentions the name's initials, a
    part of it alone ("Mr. Roth" for "Ada Roth"), or a person with the same surname: "Bob" may be "Robert". A part of
    another longer name ("Roth Lind") is something else. No name is unknown if most passages are in another language.

    >>> monk = Passage(id="1", doc_id="1", title="Bernard of Thiron", text="He founded an abbey in 1109.")
    >>> unknown_names("Who was the grandfather of Bernard of Niemodlin?", [monk])
    ('Bernard of Niemodlin',)
    """
    unknown = [name for name in full_names(question) if not any(_contains(one, _words(name)) for one in passages)]
    return tuple(unknown) if unknown and _is_english(question, passages) else ()


def full_names(question: str) -> tuple[str, ...]:
    """The names of two capitalised words or more, without those after an article, of countries, and of chapters.

    None in a text without words in lower case, where capitals say nothing.

    >>> full_names("Is Ada Roth's film Salt Road older than the Annual Report of New Zealand?")
    ('Ada Roth', 'Salt Road')
    """
    first, _, rest = question.strip().partition(" ")
    if not any(word.islower() for word in rest.split() if not re.fullmatch(_PARTICLE, word)):
        return ()
    # Capitals say nothing about a first word, so a name that it may belong to is not judged.
    text = rest if first.lower() in stop_words() else question.strip()
    named = [name for part in _ENDS.split(text) for name in _capitalised(part)]
    return tuple(
        name
        for name in dict.fromkeys(named)
        if _is_full(_significant(_words(name))) and (text is rest or not text.startswith(name))
    )


def _is_english(question: str, passages: Sequence[Passage]) -> bool:
    alike = sum(language_of(one.text) == "en" for one in passages)
    return language_of(question) == "en" and 2 * alike >= len(passages)


def _capitalised(text: str) -> Iterator[str]:
    for match in _RUN.finditer(text):
        if not _NO_NAME_AFTER.search(text[: match.start()]):
            yield match[0]


def _is_full(name: frozenset[str]) -> bool:
    return len(name) > 1 and _PARTS.isdisjoint(name) and not any(name <= country for country in _countries())


def _contains(passage: Passage, name: Name) -> bool:
    wanted, held = _significant(name), words_of(passage)
    compounds = {word for pair in pairwise(name) for word in pair if "".join(pair) in held}
    lacking = sum(not _occurs(word, held) for word in wanted - compounds)  # "Care Link" is written "CareLink" too
    if lacking == 0 or (lacking == 1 and len(wanted) >= _MANY):
        return True
    title = _significant(_words(unqualified(passage.title)))
    return (len(title) > 1 and title <= wanted) or _mentions_otherwise(passage, name)


def _mentions_otherwise(passage: Passage, name: Name) -> bool:
    """Are the name's initials mentioned, a part of it that is in no other longer name, or the same surname?"""
    wanted, mentions = _significant(name), _mentions(passage)
    initials = sorted(word[0] for word in wanted)
    short = len(wanted) >= _FEWEST_INITIALS and any(sorted(one[0]) == initials for one in mentions if len(one) == 1)
    parts = {one for one in map(_significant, mentions) if one and one <= wanted}
    others = frozenset(word for one in mentions for word in one if not wanted.issuperset(_significant(one)))
    alone = any(len(one) > 1 or one.isdisjoint(others) for one in parts)
    return short or alone or any(_have_one_surname(name, one) for one in mentions)


def _have_one_surname(name: Name, mention: Name) -> bool:
    """A first name and the same surname: "Bob Roth" and "Robert Roth", but not "Henry of Cadiz" and "Bo of Cadiz"."""
    plain = _PARTICLES.isdisjoint(name + mention)
    return plain and len(name) == 2 <= len(mention) and name[-1] == mention[-1]


def _occurs(word: str, held: frozenset[str]) -> bool:
    """Is the word among those held, or, if it is long, one that differs in a letter or two?"""
    if word in held:
        return True
    return len(word) >= _LONG and any(
        abs(len(other) - len(word)) <= 1 and SequenceMatcher(None, word, other).ratio() > _TYPO
        for other in held
        if len(other) >= _LONG
    )


@lru_cache(maxsize=512)
def _mentions(passage: Passage) -> frozenset[Name]:
    """The names in a passage and its title."""
    return frozenset(_words(match[0]) for match in _RUN.finditer(f"{passage.title}. {passage.text}"))


def _words(name: str) -> Name:
    return tuple(word for word in words(name) if len(word) > 1 and word not in _FORMS_OF_ADDRESS)


def _significant(name: Name) -> frozenset[str]:
    """The words of a name without function words."""
    return frozenset(name).difference(stop_words())


@cache
def _countries() -> tuple[frozenset[str], ...]:
    """Countries and regions, which texts mention by many names ("US", "American")."""
    return tuple(_significant(_words(name)) for name in Locale("en").territories.values())
