"""Measures and shortens a reply by what a reader sees."""

import regex

_CLOSERS = (
    "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
    ")]}\u3009\u300b\u300d\u300f\u3011\u3015\uff02\uff09\uff3d\uff5d*_~`"
)
_CHARACTER = regex.compile(r"\X")
_QUESTION_MARKS = "?\uff1f"
_INVISIBLE = regex.compile(r"[\p{Cf}\p{Cc}&&[^\n\u200d]]+", regex.VERSION1)
_SENTENCE = regex.compile(
    r"""(?:[^.!?\u2026\n\u3002\uff01\uff1f] | [.\u2026](?=[\p{L}\p{N}.]) )*
        (?:[.!?\u2026]+ [^\S\n]* | [\u3002\uff01\uff1f]+ | \n | \Z)""",
    regex.VERBOSE,
)
_LEADING = regex.compile(r"\A(?:[-*\u2022>#\s\"'\u201c\u201e\u2018\u00ab\u00bb\u2039\u203a\u300c\u300e)\]]|\d+[.)]\s)+")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_LEAST_LETTERS = 4


def length(text: str) -> int:
    """The number of characters as a reader counts them: grapheme clusters, without white space at the ends.

    >>> length("na\\u0308h?"), length("\\U0001F469\\u200D\\U0001F680?")
    (4, 2)
    """
    return sum(1 for _ in _CHARACTER.finditer(text.strip()))


def ends_with_question(text: str) -> bool:
    """Does the text end with a question, i.e. with `?` or the full-width mark, after at least one word?

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
    """Does a text contain a letter or a digit?"""
    return _LETTER.search(text) is not None


def statements(text: str) -> list[str]:
    """The sentences of a text that are not questions."""
    return [piece.strip() for piece in pieces(text) if says_something(piece) and not ends_with_question(piece)]


def last_question(text: str) -> str:
    """The last question of a text, without surrounding marks; empty if there is none with words."""
    for piece in reversed(pieces(_INVISIBLE.sub("", text))):
        sentence: str = _LEADING.sub("", _bare(piece))
        if sentence and sentence[-1] in _QUESTION_MARKS and len(_LETTER.findall(sentence)) >= _LEAST_LETTERS:
            whole = " ".join(sentence.split())
            return whole if whole.count('"') % 2 == 0 else whole.replace('"', "")
    return ""


def shortened_to_question(text: str, limit: int) -> str:
    """The last question of a text if it has at most `limit` characters, else an empty string."""
    question = last_question(text)
    return question if question and length(question) <= limit else ""


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
    whole_words = beginning.rpartition(" ")[0]
    return f"{(whole_words or beginning).rstrip()}\u2026"


def pieces(text: str) -> list[str]:
    """The sentences of a text with what follows them; joined, they equal the text."""
    return [match[0] for match in _SENTENCE.finditer(text) if match[0]]


def _bare(text: str) -> str:
    visible: str = _INVISIBLE.sub("", text)
    return visible.strip().rstrip(f"{_CLOSERS} ").strip()
