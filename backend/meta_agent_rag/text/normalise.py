"""Normal forms of text, in which differences that do not matter to a reader disappear.

There are several, because what matters depends on the use: `normalised` compares answers, `as_quoted` quotes with their
source, `unmarked` a reply with the words of a prompt, `undisguised` a passage with the wordings of attacks, and `typed`
a chat message with phrases. Names have their own form in `names.py`, without accents; the benchmark's scores use
the official script's (`benchmarks.metrics.normalize_answer`).
"""

import re
import unicodedata
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(r"[^\w\s]")
_MARKS = str.maketrans({"\u2010": "-", "\u2011": "-", "\u02bc": "'", "\u2032": "'"} | dict.fromkeys('*_`"'))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_APOSTROPHES = str.maketrans("", "", "'\u2019\u2018\u02bc\u00b4`")
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u9fff])")
_NO_WORD = re.compile(r"[\W_]+")
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u2039\u203a", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | {"\u00a0": " "}
)


def encodable(text: str) -> str:
    """The text with a question mark for each lone surrogate, which can be neither stored nor sent."""
    return text.encode("utf-8", "replace").decode()


def normalised(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces; a text of articles is kept (blood group A)."""
    plain = _PUNCTUATION.sub(" ", _plain(text).lower())
    return " ".join(_ARTICLES.sub(" ", plain).split() or plain.split())


def tokens(text: str) -> frozenset[str]:
    """The set of normalised words of a text."""
    return frozenset(normalised(text).split())


def overlap(one: str, other: str) -> float:
    """F1 of the normalised words of two answers, 0..1.

    >>> overlap("Gatwick Airport", "Gatwick")
    0.6667
    """
    left, right = Counter(normalised(one).split()), Counter(normalised(other).split())
    shared = (left & right).total()
    return round(2.0 * shared / (left.total() + right.total()), 4) if shared else 0.0


def jaccard(one: str, other: str) -> float:
    """Jaccard similarity of the token sets of two texts, 0..1; 1 if both are empty.

    >>> jaccard("Born in Paris.", "born in Paris")
    1.0
    """
    left, right = tokens(one), tokens(other)
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def as_quoted(text: str) -> str:
    """White space and typographic quotes and dashes simplified; words and case unchanged."""
    return " ".join(_plain(text).split())


def unmarked(text: str) -> str:
    """As quoted, in lower case, without invisible characters, Markdown and quotation marks: a repeated prompt."""
    shown = "".join(character for character in as_quoted(text) if unicodedata.category(character) != "Cf")
    return " ".join(shown.translate(_MARKS).casefold().split())


def undisguised(text: str) -> str:
    """Lower case, without invisible characters, look-alike forms unified; punctuation is kept, since attacks use it."""
    # Lower case here instead of a flag in each regex, which is three times as fast.
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).lower()


def apart(text: str) -> str:
    """The text with blanks around each Chinese and Japanese character, since there are none between words."""
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)


def typed(text: str) -> str:
    """The words of a chat message in lower case, without apostrophes (many leave them out) and punctuation.

    >>> typed("I DON'T know...")
    'i dont know'
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    return _NO_WORD.sub(" ", folded).strip()


def _plain(text: str) -> str:
    if text.isascii():  # as most texts are: nothing to do
        return text
    return unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHIC)
