"""The phrases of `words.yaml` in a text, and a reply measured and shortened by what a reader sees."""

import re
from functools import cache
from pathlib import Path
from string import Template

import regex

from ...text.normalise import typed
from ..phrases import folder_in_use, rows_of

_CLOSERS = (
    "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
    ")]}\u3009\u300b\u300d\u300f\u3011\u3015\uff02\uff09\uff3d\uff5d*_~`"
)
_CHARACTER = regex.compile(r"\X")
_QUESTION_MARKS = "?\uff1f\u061f"
_INVISIBLE = regex.compile(r"[\p{Cf}\p{Cc}&&[^\n\u200d]]+", regex.VERSION1)
_SENTENCE = regex.compile(
    r"""(?:[^.!?\u061f\u2026\n\u3002\uff01\uff1f] | [.\u2026](?=[\p{L}\p{N}.]) )*
        (?:[.!?\u061f\u2026]+ [^\S\n]* | [\u3002\uff01\uff1f]+ | \n | \Z)""",
    regex.VERBOSE,
)
_LEADING = regex.compile(r"\A(?:[-*\u2022>#\s\"'\u201c\u201e\u2018\u00ab\u00bb\u2039\u203a\u300c\u300e)\]]|\d+[.)]\s)+")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_JAPANESE = re.compile("[\u3040-\u30ff\uff66-\uff9f]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_LEAST_LETTERS = 4


def reason(key: str, **values: object) -> str:
    """The reason of that key, filled with values."""
    text: str = rows_of("words", folder_in_use())["reasons"][key]
    return Template(text.strip()).safe_substitute({name: str(value) for name, value in values.items()})


def holds(text: str, name: str) -> bool:
    """Whether a typed text contains one of the phrases of an entry."""
    return _pattern((name,), folder_in_use()).search(text) is not None


def beginning_of(text: str, *names: str) -> int:
    """The length of the longest phrase of these entries that a typed text begins with; 0 for none."""
    match = _pattern(names, folder_in_use()).match(text)
    return match.end() if match else 0


def ends_with(text: str, name: str) -> bool:
    """Whether a typed text ends with one of the phrases of an entry."""
    return re.search(f"(?:{_pattern((name,), folder_in_use()).pattern})$", text) is not None


def consists_of(text: str, *wanted: str, beside: str = "") -> bool:
    """Whether a typed text is made of the phrases of these entries and those `beside` them, with one of the wanted."""
    folder = folder_in_use()
    known = _pattern((*wanted, beside) if beside else wanted, folder).pattern
    return bool(re.fullmatch(rf"(?>(?:{known})\s*)+", text)) and _pattern(wanted, folder).search(text) is not None


@cache
def _pattern(names: tuple[str, ...], folder: Path | None) -> re.Pattern[str]:
    """The phrases of some entries, the longest first; English ones as whole words."""
    rows = rows_of("words", folder)
    phrases = {typed(phrase) for name in names for phrase in rows[name]} - {""}
    words = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(rf"\b{re.escape(one)}\b" if one.isascii() else re.escape(one) for one in words))


def language_of(text: str) -> str:
    """`ja` for a text with kana or only ideographs, else `en`: the languages of the coach's own questions."""
    if _JAPANESE.search(text):
        return "ja"
    return "ja" if _IDEOGRAPH.search(text) and not re.search(r"[A-Za-z]", text) else "en"


def length(text: str) -> int:
    """The number of characters as a reader counts them: grapheme clusters, without white space at the ends.

    >>> length("na\\u0308h?"), length("\\U0001F469\\u200D\\U0001F680?")
    (4, 2)
    """
    return sum(1 for _ in _CHARACTER.finditer(text.strip()))


def ends_with_question(text: str) -> bool:
    """Whether the text ends with a question: with `?` or the full-width mark, after at least one word.

    Closing quotes, brackets and emphasis may follow the mark.

    >>> ends_with_question("It is *what*?"), ends_with_question("Why? Because."), ends_with_question("???")
    (True, False, False)
    """
    bare = _bare(text)
    if not bare or bare[-1] not in _QUESTION_MARKS:
        return False
    sentences = [piece for piece in pieces(bare) if piece.strip()]
    return bool(sentences) and says_something(sentences[-1])


def says_something(text: str) -> bool:
    """Whether a text contains a letter or a digit."""
    return _LETTER.search(text) is not None


def last_question(text: str) -> str:
    """The last question of a text, without surrounding marks; empty if there is none with words."""
    for piece in reversed(pieces(_INVISIBLE.sub("", text))):
        sentence: str = _LEADING.sub("", _bare(piece))
        if sentence and sentence[-1] in _QUESTION_MARKS and len(_LETTER.findall(sentence)) >= _LEAST_LETTERS:
            whole = " ".join(sentence.split())
            return whole if whole.count('"') % 2 == 0 else whole.replace('"', "")
    return ""


def cut(text: str, limit: int) -> str:
    """The text, or its first sentences that fit into `limit` characters, else its beginning and `…`."""
    text = text.strip()
    if length(text) <= limit:
        return text
    kept = ""
    for piece in pieces(text):
        if length(kept + piece) > limit:
            break
        kept += piece
    if says_something(kept):
        return kept.strip()
    beginning: str = "".join(match[0] for match in list(_CHARACTER.finditer(text))[: max(limit - 1, 0)])
    return f"{(beginning.rpartition(' ')[0] or beginning).rstrip()}\u2026"


def pieces(text: str) -> list[str]:
    """The sentences of a text with what follows them; joined, they equal the text."""
    return [match[0] for match in _SENTENCE.finditer(text) if match[0]]


def _bare(text: str) -> str:
    visible: str = _INVISIBLE.sub("", text)
    return visible.strip().rstrip(f"{_CLOSERS} ").strip()
