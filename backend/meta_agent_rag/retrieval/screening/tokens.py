"""A passage split into tokens and windows of one to three sentences, for the detection of orders.

Items recognised by form rather than letters (an address, a tag, a quotation mark, a row of dashes) are tokens of a
separate kind, regardless of their text. Chinese and Japanese characters are single tokens.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from ...text.normalise import undisguised

EDGE = "¶"
"""Between sentences, and at both ends."""
LONGEST_WINDOW = 60
"""Tokens."""
_WIDEST = 3
_SENTENCE_END = re.compile(r"\n\s*\n|\n(?!\s*[a-z])|(?<=[.!?:;])\s+|(?<=[。！？])\s*")  # noqa: RUF001  # full-width marks
"""A line that continues in lower case was broken at the margin."""
_FORMS = {
    "link": r"https?://[^\s<>\"'）)\]}]+|www\.[^\s<>\"')\]}]+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.]+"  # noqa: RUF001
    r"|(?<![a-z0-9-])(?<![a-z0-9-]\.)(?:[a-z0-9-]+\.)+(?:com|org|net|io|co|dev|ai|info|biz|app|example|invalid|test|local|de|fr|es|it|br|ru|cn|jp|uk)\b(?:/\S*)?",
    "blob": r"[a-z0-9+/_-]{24,}={0,2}|(?:[0-9a-f]{2}[\s:,]){8,}",
    "tag": r"<!--|-->|<[/?!|]?[a-z_][\w-]*|[|/?]>|\[/?[a-z_]+\](?!\()|\[\[|\]\]|\{\{|\}\}|/\*|\*/|<<|>>|%%",
    "ruler": r"[-=#*_~+]{3,}",
    "brace": r"[{}\[\]<>|\\`]",
    "quote": r"[\"\u201c-\u201e\u00ab\u00bb\u2039\u203a\u300c-\u300f]|(?<!\w)['\u2018-\u201a]|['\u2019](?!\w)",
    "number": r"\d+",
    "mark": r"[!#*:=~@%$/]",
}
KINDS = tuple(f"<{kind}>" for kind in _FORMS)
"""Tokens recognised by form."""
_ALL_KINDS = frozenset(KINDS)
_CHARACTER = r"[\u3040-\u30ff\u3400-\u9fff]"
_WORD = r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]+(?:['\u2019][^\W\d_]+)*"
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{form})" for kind, form in _FORMS.items() if kind not in ("number", "mark"))
    + f"|(?P<character>{_CHARACTER})|(?P<word>{_WORD})|(?P<number>{_FORMS['number']})|(?P<mark>{_FORMS['mark']})"
)
_CONTRACTED = re.compile(r"['\u2019](t|re|ve|ll|d|m|s)$")
_APOSTROPHE = re.compile(r"['\u2019]")


@dataclass(frozen=True)
class Tokens:
    """A text as tokens, and the places of the edges between its sentences."""

    tokens: tuple[str, ...]
    edges: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "Tokens":
        """Split a text; letter case, accents, invisible characters and look-alike forms are ignored."""
        tokens, edges = [EDGE], [0]
        for sentence in _SENTENCE_END.split(text):
            found = tokens_of(undisguised(sentence))
            tokens += found
            if not _ALL_KINDS.issuperset(found):
                tokens.append(EDGE)
                edges.append(len(tokens) - 1)
        return cls(tuple(tokens), tuple(edges))

    def windows(self) -> list[tuple[int, int]]:
        """Ranges of tokens: each sentence, in parts if it is long, and two and three in a row."""
        found = []
        half = LONGEST_WINDOW // 2
        for start, end in zip(self.edges, self.edges[1:], strict=False):
            found += [(at, min(at + LONGEST_WINDOW, end + 1)) for at in range(start, max(end - half, start) + 1, half)]
        for before, at, after in zip(self.edges, self.edges[1:], self.edges[2:], strict=False):
            found.append((max(before, at - half), min(after, at + half) + 1))
        for start, end in zip(self.edges, self.edges[_WIDEST:], strict=False):
            if end - start < LONGEST_WINDOW:
                found.append((start, end + 1))
        return found


def tokens_of(text: str) -> list[str]:
    """The tokens of a text in lower case: words without accents, and the names of forms."""
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "word":
            found += _words(match[0])
        elif kind == "character":
            found.append(match[0])
        elif kind:
            found.append(f"<{kind}>")
    return found


@lru_cache(maxsize=100_000)
def _words(word: str) -> tuple[str, ...]:
    """Parts of a word at its apostrophes, except in English contractions: `l'assistant` is two, `don't` is one."""
    plain = _folded(_CONTRACTED.sub(r"\1", word))
    return tuple(part for part in _APOSTROPHE.split(plain) if part)


def _folded(word: str) -> str:
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFD", word.replace("ß", "ss"))
    return unicodedata.normalize("NFC", "".join(part for part in parts if unicodedata.category(part) != "Mn"))
