"""Checks whether a draft's quotes occur in the evidence, and makes excerpts around them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..text.normalise import as_quoted, normalised
from ..text.sentences import sentences

_CAPITAL_OR_DIGIT = re.compile(r"^\W*[A-Z\u00c0-\u00de\u0410-\u042f]|\d")
_DIGIT = re.compile(r"\d")
_SPACED = re.compile(
    r"[^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_TAG = re.compile(r"</?passage\b[^>]*>", re.IGNORECASE)
_ALIKE = {
    "'": "['\u2018-\u201a\u2039\u203a]",
    '"': '["\u201c-\u201e\u00ab\u00bb]',
    "-": "[-\u2010-\u2014\u2212]",
}
_COMBINING = "[\u0300-\u036f]"
_LEAST_SHARED = 0.7
_LEAST_WORDS = 5


def is_verbatim(quote: str, texts: Iterable[str]) -> bool:
    """Does the quote occur in one of the texts, ignoring white space and typographic marks?

    A full stop added at the end is accepted.
    """
    wanted = _core(quote)
    whole_words = re.compile(_bounded(wanted, re.escape(wanted)))
    return bool(wanted) and any(whole_words.search(as_quoted(whole)) for whole in texts)


def as_written(quote: str, texts: Sequence[str], bodies: Sequence[str]) -> tuple[str, ...]:
    """What of a quote is in the passages, in their words; empty if nothing is.

    A quote that nearly copies a sentence becomes that sentence. Of several sentences those that are copied are kept;
    the tags of a passage are removed. `texts` are the passages with their titles, `bodies` those without.
    """
    plain = quote if is_verbatim(quote, texts) else _TAG.sub(" ", quote).strip()
    if is_verbatim(plain, texts):
        return (plain,)
    if (copied := copied_sentence(plain, bodies)) is not None:
        return (copied,)
    parts = [part.strip() for part in sentences(plain)]
    return tuple(part for part in parts if len(part.split()) >= _LEAST_WORDS and is_verbatim(part, texts))


def copied_sentence(quote: str, texts: Iterable[str]) -> str | None:
    """The sentence that the quote nearly copies; `None` if it copies none.

    At least 70 % of the quote's words must be there, counted with repetitions and without articles, and all its numbers
    and capitalised words. Small models drop a clause or a bracket as they copy; what is shown is the sentence itself.
    """
    wanted, values = Counter(normalised(quote).split()), _values(quote)
    if wanted.total() < _LEAST_WORDS:
        return None
    best, most = None, _LEAST_SHARED * wanted.total()
    for text in texts:
        for sentence in sentences(text):
            held = Counter(normalised(sentence).split())
            shared = (wanted & held).total()
            if values <= held.keys() and (shared > most or (shared == most and best is None)):
                best, most = sentence.strip(), shared
    return best


def _values(quote: str) -> set[str]:
    """Its words with a digit or a capital, but for the capital of the first word."""
    first, *rest = quote.split() or [""]
    words = [word for word in rest if _CAPITAL_OR_DIGIT.search(word)] + ([first] if _DIGIT.search(first) else [])
    return {part for word in words for part in normalised(word).split()}


def verbatim_share(quotes: Sequence[str], texts: Sequence[str]) -> float | None:
    """Share of the quotes that occur verbatim in the texts, 0..1; `None` if nothing was quoted."""
    if not quotes:
        return None
    return sum(is_verbatim(quote, texts) for quote in quotes) / len(quotes)


def place(quote: str, text: str) -> tuple[int, int] | None:
    """(start, end) of the first place in `text` where the quote occurs, but for white space and typographic marks.

    `None` if it does not occur, or if its letters are written differently there, as with ligatures.
    """
    core = _core(quote)
    words = ("".join(_ALIKE.get(sign, re.escape(sign)) for sign in word) for word in core.split())
    pattern = r"\s+".join(words)
    found = re.search(rf"{_bounded(core, pattern)}(?!{_COMBINING})", text) if pattern else None
    return None if found is None else found.span()


def _bounded(core: str, pattern: str) -> str:
    """The pattern of a text, as whole words where its script has blanks between them."""
    before, after = (r"(?<!\w)" if _SPACED.match(core) else ""), (r"(?!\w)" if _SPACED.match(core[::-1]) else "")
    before += r"(?<!\d[.,])" if core[:1].isdigit() else ""
    return before + pattern + after + (r"(?![.,]\d)" if core[-1:].isdigit() else "")


def _core(quote: str) -> str:
    return as_quoted(quote).strip('" ').rstrip('." ')


SHORTEST = 30
LONGEST = 50
"""The number of words in an excerpt, if the text is long enough."""
_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?][\"')\]\u2019\u201d]*$")


def excerpt(text: str, start: int, end: int) -> tuple[int, int]:
    """(start, end) of an excerpt of 30 to 50 words around `text[start:end]`, if the text is long enough.

    A longer stretch is cut at its end. A shorter one is extended by the words that follow, then by those before it; a
    sentence that ends within the 50 words is not broken off.
    """
    words = [match.span() for match in _WORD.finditer(text)]
    if not words:
        return 0, 0
    first = next((index for index, (_, stop) in enumerate(words) if stop > start), len(words) - 1)
    last = max(first, sum(begin < end for begin, _ in words) - 1)
    last = max(min(last, first + LONGEST - 1), min(first + SHORTEST, len(words)) - 1)
    first = min(first, max(0, last - SHORTEST + 1))
    closing = range(last, min(first + LONGEST, len(words)))
    last = next((index for index in closing if _SENTENCE_END.search(text, *words[index])), last)
    return words[first][0], words[last][1]
