"""Full names in a question that its passages do not contain.

Without a passage about the person or thing asked about, a small model answers from one about a namesake: asked about
"Bernard of Niemodlin", it tells of "Bernard of Thiron". Developed on every second question of the HotpotQA,
2WikiMultiHopQA and MuSiQue files, with and without their supporting passages, and measured on the others
(docs/decisions/031-how-grounded-answers-are-measured.md).
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache

from babel import Locale

from ..retrieval.passage import Passage
from ..text.language import language_of
from ..text.names import unqualified, words
from ..text.words import stop_words
from .support.neighbours import words_of

_PARTICLE = r"(?i:of|the|de|der|del|di|du|da|la|le|von|van|al|ibn|for|in|on|at|to)"
_UPPER = r"[^\W\d_a-z\u00df-\u00ff]"
_CAPITAL = rf"(?:(?:{_UPPER}|St|Dr|Mr|Mrs|Ms|Jr|Sr|Prof)\.|{_UPPER}[\w&-]*(?:['\u2019](?!s\b)\w+)*)"
_RUN = re.compile(rf"{_CAPITAL}(?:\s+(?:{_PARTICLE}\s+)*{_CAPITAL})*")
_ENDS = re.compile(r"\([^)]*\)|['\u2019][sS]\b|(?<=[^\W\d_A-Z]{2})[.!?](?=\s)|\s(?:[Aa]nd|[Oo]r|&)(?=\s)")
_ARTICLE = re.compile(r"\b(?:the|an?)\s+$", re.IGNORECASE)
_PARTS = frozenset(
    {
        *("annex", "appendix", "article", "chapter", "clause", "figure", "level", "page", "paragraph", "part", "phase"),
        *("schedule", "section", "step", "table", "version", "volume"),
    }
)
"""What documents number: "Chapter Two" is not a name."""
_FORMS_OF_ADDRESS = frozenset({"dr", "jr", "mr", "mrs", "ms", "prof", "sr"})
_TYPO = 0.85
_LONG = 6
"""Letters from which a word may be misspelt."""
_INITIALS = 2
_MANY = 4
"""Words from which a name may have one that is misspelt or left out."""


def unknown_names(question: str, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The full names in a question that no passage contains, as the question writes them.

    A passage contains a name if it contains all of its words (all but one of four or more), in any order and with at
    most small misspellings, if the name contains the passage's title, or if the passage mentions the initials, or a
    part of the name alone ("Mr. Roth" for "Ada Roth"). A part of a longer name with other words ("Bo Roth") is
    somebody else. No name is unknown if most passages are in another language than the question, or if that is
    German, where every noun is capitalised.

    >>> film = Passage(id="1", doc_id="1", title="Bo Roth", text="Bo Roth directed Salt Road in 1962.")
    >>> unknown_names("Was Ada Roth the director of Salt Road?", [film])
    ('Ada Roth',)
    """
    language = language_of(question)
    alike = sum(language_of(one.text) == language for one in passages)
    if language == "de" or 2 * alike < len(passages):
        return ()
    return tuple(name for name in full_names(question) if not any(_contains(one, name) for one in passages))


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
        if _is_full(_significant(name)) and (text is rest or not text.startswith(name))
    )


def _capitalised(text: str) -> Iterator[str]:
    for match in _RUN.finditer(text):
        if not _ARTICLE.search(text[: match.start()]):
            yield match[0]


def _is_full(name: frozenset[str]) -> bool:
    return len(name) > 1 and _PARTS.isdisjoint(name) and not any(name <= country for country in _countries())


def _contains(passage: Passage, name: str) -> bool:
    wanted = _significant(name)
    lacking = sum(not _occurs(word, words_of(passage)) for word in wanted)
    if lacking == 0 or (lacking == 1 and len(wanted) >= _MANY):
        return True
    title = _significant(unqualified(passage.title))
    return (len(title) > 1 and title <= wanted) or _mentions_a_part(passage, wanted)


def _mentions_a_part(passage: Passage, wanted: frozenset[str]) -> bool:
    """Is the name, its initials or a part of it mentioned, and the part in no longer name with other words?"""
    mentions = _mentions(passage)
    initials = sorted(word[0] for word in wanted)
    if len(wanted) > _INITIALS and any(sorted(word) == initials for one in mentions if len(one) == 1 for word in one):
        return True
    parts = [one for one in mentions if one and _is_part(one, wanted)]
    others = frozenset(word for one in mentions if one not in parts for word in one)
    return any(len(one) > 1 or one.isdisjoint(others) for one in parts)


def _is_part(mention: frozenset[str], wanted: frozenset[str]) -> bool:
    """Does a mention consist of words of the name or their first letters, with one complete word?"""
    complete = mention & wanted
    initials = {word[0] for word in wanted}
    return any(len(word) > _INITIALS for word in complete) and mention - complete <= initials


def _occurs(word: str, held: frozenset[str]) -> bool:
    """Is the word among those held, or, if it is long, one that differs in a letter or two?"""
    if word in held:
        return True
    return len(word) >= _LONG and any(
        abs(len(other) - len(word)) < _INITIALS and SequenceMatcher(None, word, other).ratio() > _TYPO
        for other in held
        if len(other) >= _LONG
    )


@lru_cache(maxsize=512)
def _mentions(passage: Passage) -> frozenset[frozenset[str]]:
    """The names in a passage and its title, each as its words."""
    text = f"{passage.title}. {passage.text}"
    return frozenset(_significant(match[0]) for match in _RUN.finditer(text))


def _significant(name: str) -> frozenset[str]:
    """The words of a name without function words and forms of address."""
    return frozenset(words(name)).difference(stop_words(), _FORMS_OF_ADDRESS)


@cache
def _countries() -> tuple[frozenset[str], ...]:
    """Countries and regions, which texts mention by many names ("US", "American")."""
    return tuple(_significant(name) for name in Locale("en").territories.values())
