"""From bytes in any encoding to text without invisible characters.

Zero-width and directional characters hide words from a reader or from a filter, so they are removed before any other
processing. The two joiners are kept between letters of the scripts that need them for spelling.
"""

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_SAMPLE = 65_536
_MOST_CONTROLS, _MOST_CONTROLS_IN_UTF8 = 0.01, 0.2
"""The shares of control characters above which content is not text. Valid UTF-8 is rarely anything else."""
_LEAST_FOREIGN = 8
"""The number of non-ASCII characters from which their encoding can be told; fewer are read as Windows-1252."""

_AS_PLAUSIBLE = 0.05


def decoded(content: bytes, declared: str | None = None) -> str | None:
    """`content` as text, `None` if it is not text.

    A byte order mark decides, then UTF-8 (even if damaged), UTF-16 without a mark, the encoding that the content
    itself declares, and finally the one that charset-normalizer finds the most plausible.
    """
    most = _MOST_CONTROLS
    if (wide := _wide_encoding(content)) is not None:
        text = content.decode(wide, "replace")
    else:
        try:
            text, most = content.decode("utf-8"), _MOST_CONTROLS_IN_UTF8
        except UnicodeDecodeError:
            text = _eight_bit(content, declared)
    sample = text[:_SAMPLE]
    return None if len(_CONTROLS.findall(sample)) > most * len(sample) else text


def _wide_encoding(content: bytes) -> str | None:
    """The encoding of a byte order mark, or UTF-16 by its zero bytes: one in every second place, and only there."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    sample = content[:_SAMPLE]
    first, second = sample[0::2].count(0), sample[1::2].count(0)
    most, least = max(first, second), min(first, second)
    if len(content) % 2 or most * 5 < len(sample) // 2 or least * 4 > most:
        return None
    return "utf-16-le" if second > first else "utf-16-be"


def _eight_bit(content: bytes, declared: str | None) -> str:
    from charset_normalizer import from_bytes

    try:
        if declared is not None:
            return content.decode(declared, "replace")
    except (LookupError, ValueError):  # unknown, or hex, zip and the like
        pass
    damaged = content.decode("utf-8", "replace")
    foreign = sum(1 for character in damaged if character > "\x7f")
    if damaged.count("\ufffd") * 2 <= foreign:  # most of the non-ASCII part is valid UTF-8
        return damaged
    found = list(from_bytes(content[:_SAMPLE])) if foreign >= _LEAST_FOREIGN else []
    # the library prefers Central European to equally plausible French
    western = [
        one
        for one in found
        if one.encoding == "cp1252"
        and one.chaos <= found[0].chaos + _AS_PLAUSIBLE
        and one.coherence >= found[0].coherence
    ]
    best = (western or found)[:1]
    return content.decode(best[0].encoding if best else "cp1252", "replace")


EXPONENT = re.compile(r"[-\u2212]?\d")
"""The beginning of raised text after which a number goes on: 10 to the power of 6 is no 106."""
_OBJECT = re.compile(r"'?<[\w.]+ object at 0x[0-9A-Fa-f]+>'?")
_MOST_OF_A_FAULT = 120
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPELLED_WITH_JOINERS = "\u0600-\u08ff\u0900-\u0dff"
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
    f"|(?<![{_SPELLED_WITH_JOINERS}])[\u200c\u200d]|[\u200c\u200d](?![{_SPELLED_WITH_JOINERS}])"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff\u0e00-\u0eff"
"""Han, kana, their punctuation, Thai and Lao: written without blanks between words."""
_BREAK = re.compile(rf"(?<=[{_UNSPACED}])[^\S\n]*\n\s*(?=[{_UNSPACED}0-9])|(?<=[0-9])[^\S\n]*\n\s*(?=[{_UNSPACED}])")


def clean(text: str) -> str:
    """`text` without invisible and control characters; lines end with `\\n`, a lone surrogate becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text)))


def one_line(text: str) -> str:
    """The cleaned text with every run of white space as one blank."""
    return " ".join(clean(text).split())


def flowed(text: str) -> str:
    """Wrapped lines as one line: a line break becomes a blank, and nothing in scripts without blanks.

    >>> flowed("a river\\nin spring"), flowed("春の\\n川")
    ('a river in spring', '春の川')
    """
    return " ".join(_BREAK.sub("", text).split())


def fault_of(error: BaseException) -> str:
    """An error of a library as a clause for the user, without the addresses of objects in memory."""
    return f"{type(error).__name__}: {_OBJECT.sub('the file', one_line(str(error)))[:_MOST_OF_A_FAULT]}"
