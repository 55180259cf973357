"""Names, compared as a reader would: the keys by which a mention finds a title."""

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import yaml

LONGEST_NAME = 8
"""The most words; a longer title is found by its words, not by its name."""

LONGEST_PHRASE = 6
"""The most words; a longer capitalised run is a heading rather than a name."""
SHORTEST_WORD = 4
"""The minimum number of letters in a one-word name: shorter ones are mostly initials and ranks."""

_CAPITAL = r"[^\W\d_a-z\u00df-\u00ff\u03ac-\u03ce\u0430-\u045f][\w.&-]*"
_PHRASE = re.compile(rf"(?<!\w){_CAPITAL}(?:\s+(?:(?:of|the|de|la|le|von|van|der|del|al|ibn)\s+)*{_CAPITAL})*")
_SENTENCE_END = re.compile(r"(?<=[^\W\d_A-Z]{2}[.!?])\s+")

_NO_WORD = {code: " " for code in range(128) if not chr(code).isalnum()}
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_MARK = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


class NameKey(NamedTuple):
    """A key of a title; `whole` unless a qualifier in brackets was removed from it."""

    key: str
    whole: bool


@cache
def stop_words() -> tuple[str, ...]:
    """English function words, in lower case, from `stopwords.yaml`."""
    rows = yaml.safe_load(files(__package__).joinpath("stopwords.yaml").read_text("utf-8"))
    return tuple(word for row in rows for word in row)


def words(text: str) -> list[str]:
    """The words of a text without case, accents and punctuation; `&` becomes the word "and".

    >>> words("Béla Bartók &amp; Sons")
    ['bela', 'bartok', 'and', 'sons']
    """
    return _spaced(_folded(text)).split()


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """The words of a text separated by single blanks, with one at either end, so that whole words can be found."""
    return f" {' '.join(words(text))} "


@lru_cache(maxsize=8192)
def spaced(text: str) -> str:
    """Like `plain`, with any number of blanks between words: sufficient, and faster, for searching single words."""
    return f" {_spaced(_folded(text))} "


def content_words(text: str) -> list[str]:
    """The distinct words of a text without function words; if it has no others, the function words.

    >>> content_words("Where was the director of The Salt Road born?")
    ['director', 'salt', 'road', 'born']
    """
    every = list(dict.fromkeys(words(text)))
    return [word for word in every if word not in stop_words()] or every


def name_keys(title: str) -> tuple[NameKey, ...]:
    """The keys of a title: complete, and without a qualifier in brackets at its end.

    A function word alone, such as "It", is not a name, because every text would mention it.

    >>> name_keys("Crash (2004 film)")
    (NameKey(key='crash 2004 film', whole=True), NameKey(key='crash', whole=False))
    """
    whole, bare = _key(title), _key(unqualified(title))
    keys = (NameKey(whole, whole=True), NameKey(bare, whole=False))
    return tuple(key for key in keys[: 1 if bare == whole else 2] if key.key and key.key not in stop_words())


def unqualified(title: str) -> str:
    """The title without a qualifier in brackets at its end."""
    return _QUALIFIER.sub("", title)


@lru_cache(maxsize=1024)
def proper_names(text: str) -> tuple[str, ...]:
    """The keys of the names in a text, without duplicates: capitalised runs, whether or not they are titles.

    A single word counts only within a sentence, because every sentence begins with a capital.

    >>> proper_names("In 1943 the painter Laura Knight met Ruby. She lived in Staithes.")
    ('laura knight', 'ruby', 'staithes')
    """
    found: dict[str, None] = {}
    for sentence in _SENTENCE_END.split(text):
        for match in _PHRASE.finditer(sentence):
            key = words(match[0])
            while key and key[0] in stop_words():
                del key[0]
            inner = match.start() > 0 and len("".join(key)) >= SHORTEST_WORD
            if 1 < len(key) <= LONGEST_PHRASE or (len(key) == 1 and inner):
                found[" ".join(key)] = None
    return tuple(found)


def mentioned(texts: Sequence[str], known: Callable[[Sequence[str]], Collection[str]]) -> list[tuple[str, ...]]:
    """The names that occur in each text, without duplicates, in order; of overlapping ones the first and longest.

    `known` returns which of the given keys are names; it is called once, with every run of words that could be one.
    """
    read = [_starts(text) for text in texts]
    runs = [{start: _runs(folded, start) for start in starts} for folded, starts in read]
    names = known(list(dict.fromkeys(run for one in runs for some in one.values() for run in some)))
    return [_first_and_longest(one, names) for one in runs]


def _runs(folded: Sequence[str], start: int) -> list[str]:
    return [" ".join(folded[start:end]) for end in range(start + 1, min(start + LONGEST_NAME, len(folded)) + 1)]


def _first_and_longest(runs: Mapping[int, Sequence[str]], names: Collection[str]) -> tuple[str, ...]:
    hits: dict[str, None] = {}
    after = 0
    for start, some in runs.items():
        if start >= after and (name := next((run for run in reversed(some) if run in names), "")):
            hits[name] = None
            after = start + name.count(" ") + 1
    return tuple(hits)


@lru_cache(maxsize=1024)  # many questions find the same passages
def _starts(text: str) -> tuple[list[str], Sequence[int]]:
    """The words of a text, and possible starts of names: at a capital letter or digit, or anywhere if there is none."""
    found = _spaced(_unescaped(text)).split()
    folded = _folded(" ".join(found)).split()
    if len(found) != len(folded):  # folding splits a character, such as the half in "2½"
        folded = [_key(word) for word in found]
    capitals = [place for place, word in enumerate(found) if not word[0].islower()]
    return folded, capitals or range(len(found))


def _key(title: str) -> str:
    return " ".join(words(title))


def _unescaped(text: str) -> str:
    return html.unescape(text).replace("&", " and ") if "&" in text else text


def _folded(text: str) -> str:
    text = _unescaped(text)
    if text.isascii():
        return text.lower()
    return _MARK.sub("", unicodedata.normalize("NFKD", text)).lower()


def _spaced(text: str) -> str:
    """The text with blanks for everything but letters and digits. In two steps, for speed: most text is ASCII."""
    if not text.isascii():
        text = _FOREIGN.sub(lambda char: char[0] if char[0].isalnum() else " ", text)
    return text.translate(_NO_WORD)
