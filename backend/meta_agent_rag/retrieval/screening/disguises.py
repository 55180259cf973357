"""Reveals disguised text: encodings, spaced letters, digits for letters, reversed words.

Each is only looked for if the form of the text suggests it, so an ordinary passage costs next to nothing.
"""

import base64
import codecs
import re
from binascii import Error
from collections.abc import Callable, Iterator
from functools import lru_cache
from html import unescape
from urllib.parse import unquote

from .concepts import meaning_of

_BASE64 = re.compile(r"(?<![\w+/])(?:[A-Za-z0-9+/]{4}){4,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![\w+/=])")
_HEXADECIMAL = re.compile(r"(?:\b|\\x|0x)(?:[0-9a-fA-F]{2}[ :]?(?:\\x)?){10,}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]*){3}")
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[a-z]+);")
_APART = re.compile(r"(?<!\w)\w([ .\-_*])\w(?:\1{1,3}\w){3,}(?!\w)")
_WORD = re.compile(r"[a-z]{5,}")
_LEET_WORD = re.compile(r"\b(?=\w*[a-zA-Z])(?=\w*[0134578@$])[\w@$]{4,}\b")
_LEET = str.maketrans("0134578@$", "oieastbas")
_SEVERAL = 3
_LEAST = 10
_MOST = 20


def readings(text: str) -> Iterator[str]:
    """The hidden texts in a text, without the text itself; empty for an ordinary one."""
    yield from _decoded(text)
    if "%" in text and _PERCENT.search(text):
        yield unquote(text)
    if len(_ENTITY.findall(text)) >= _SEVERAL:
        yield unescape(text)
    if _APART.search(text):
        yield _APART.sub(_joined, text)
    if len(_LEET_WORD.findall(text)) >= _SEVERAL:
        yield _LEET_WORD.sub(lambda match: match[0].translate(_LEET), text)
    meanings = [means for word in _WORD.findall(text.lower()) if any(means := _turned_meanings(word))]
    for turned, means in zip(_TURNED, zip(*meanings, strict=True), strict=False):
        if sum(means) >= _SEVERAL:
            yield turned(text)


def _decoded(text: str) -> Iterator[str]:
    for pattern, decode in ((_BASE64, _from_base64), (_HEXADECIMAL, _from_hexadecimal)):
        for match in list(pattern.finditer(text))[:_MOST]:
            plain = _as_text(match[0], decode)
            if plain:
                yield plain


def _as_text(encoded: str, decode: Callable[[str], bytes]) -> str:
    """The decoded text of an encoding; empty if it does not decode to text."""
    try:
        plain = decode(encoded).decode("utf-8")
    except (ValueError, Error):
        return ""
    letters = sum(character.isalpha() or character.isspace() for character in plain)
    return plain if len(plain) >= _LEAST and letters >= 0.7 * len(plain) and " " in plain else ""


def _from_base64(encoded: str) -> bytes:
    return base64.b64decode(encoded, validate=True)


def _from_hexadecimal(encoded: str) -> bytes:
    digits = re.sub(r"\\x|0x|[^0-9a-fA-F]", "", encoded)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _joined(match: re.Match[str]) -> str:
    """Spaced letters as words; with one mark between letters, there are two between words."""
    return match[0].replace(match[1] * 2, "\n").replace(match[1], "").replace("\n", " ")


def _backwards(text: str) -> str:
    return text[::-1]


def _rotated(text: str) -> str:
    return codecs.encode(text, "rot13")


_TURNED = (_backwards, _rotated)


@lru_cache(maxsize=50_000)
def _turned_meanings(word: str) -> tuple[bool, ...]:
    """For each reversal: does the word have a meaning when reversed, and none as written?"""
    return tuple(bool(meaning_of(turned(word))) and not meaning_of(word) for turned in _TURNED)
