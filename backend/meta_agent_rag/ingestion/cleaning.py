"""Text as a reader sees it: without the characters that only a machine does.

Zero-width and directional characters hide words from a reader or from a filter, so they go before
anything looks at a text. The two joiners stay between letters of the scripts that spell with them.
"""

import re

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_SPELLED_WITH_JOINERS = "\u0600-\u08ff\u0900-\u0dff"
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f"  # control characters, but for tab and newline
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
    f"|(?<![{_SPELLED_WITH_JOINERS}])[\u200c\u200d]|[\u200c\u200d](?![{_SPELLED_WITH_JOINERS}])"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` without invisible and control characters; lines end with `\\n`, a lone surrogate becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text)))


def one_line(text: str) -> str:
    """Cleaned, with every run of white space as one blank."""
    return " ".join(clean(text).split())
