"""Keeps data within its tags: no text of a document, a model or a user opens or closes a tag of a prompt."""

import re
from html import escape

LONGEST_ATTRIBUTE = 300
"""The most characters of a title or heading in a tag."""

_TAG = re.compile(r"<(?=\s*(?:/\s*)?(?:passage|conversation|summary|points))", re.IGNORECASE)


def fenced(text: str) -> str:
    """The text with the brackets of the prompts' own tags escaped; any other text is unchanged.

    >>> fenced("1 < 2 <</conversation>")
    '1 < 2 <&lt;/conversation>'
    """
    return _TAG.sub("&lt;", text)


def attribute(text: str) -> str:
    """A title or heading for the attribute of a tag: on one line, of bounded length, and escaped."""
    line = " ".join(text.split())
    if len(line) > LONGEST_ATTRIBUTE:
        line = f"{line[: LONGEST_ATTRIBUTE - 1]}\u2026"
    # apostrophes are not escaped: a small model copies "&#x27;" into its answer
    return escape(line, quote=False).replace('"', "&quot;")
