"""Wording shared by all interfaces: a number with its noun, a free call, and the fault of a value."""

import re
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

FREE = "free (runs on this machine)"
"""Shown instead of dollars if the embedded model answered."""

_ID_DIGEST = re.compile(r"-[0-9a-f]{12}$")
SESSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,47}$"
_OWN = {
    "missing": "it is missing",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "json_invalid": "it is not JSON",
    "date_from_datetime_inexact": "it must be a date",
    "path_type": "it must be a path",
    SESSION_PATTERN: (
        "it must have 1 to 48 letters, digits, dots, dashes or underscores, beginning with a letter or digit"
    ),
}
"""The message for a fault of that type, or for a text that does not match that pattern."""
_PLAIN = (
    (r"^\w+ should ", "it must "),
    (r", (?:unable to|got an?|input is) .*| after validation.*", ""),
    (r"be a (?:valid )?dictionary.*", "be an object"),
    ("a valid (?:list|tuple|set|frozenset)", "a list"),
    ("a valid string", "text"),
    ("a valid integer", "a whole number"),
    ("a valid (?=number|path)", "a "),
    ("a valid boolean", "true or false"),
    ("less than or equal to", "at most"),
    ("greater than or equal to", "at least"),
    ("greater than", "more than"),
)
"""Patterns in pydantic's messages, and what stands for them, in order."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "round"), counted(2, "round"), counted(2, "corpus", "corpora")
    ('1 round', '2 rounds', '2 corpora')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def fault_words(fault: Mapping[str, Any]) -> str:
    """The fault of a value in plain words; `fault` is one of a pydantic `ValidationError.errors()`.

    >>> fault_words({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse ..."})
    'it must be a whole number'
    """
    kind, pattern = str(fault["type"]), str((fault.get("ctx") or {}).get("pattern"))
    if kind in {"value_error", "assertion_error"}:  # after "Value error, " it is a message of ours
        return str(fault["msg"]).partition(", ")[2].rstrip(".")
    words = _OWN.get(kind) or _OWN.get(pattern) or str(fault["msg"])
    for theirs, ours in _PLAIN:
        words = re.sub(theirs, ours, words)
    return words


def first_fault(error: "ValidationError", *, with_value: bool = True) -> str:
    """The first fault of a value: the field, the fault, and the value found, unless it may be secret.

    >>> first_fault(fault_of({"rows": [{"f1": "high"}]}))  # doctest: +SKIP
    "field 'rows[0].f1': it must be a number, found 'high'"
    """
    fault = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    field = f"field {place!r}: " if place else ""
    shown = with_value and fault["type"] not in _OWN
    found = f", found {reprlib.repr(fault['input'])}" if shown else ""
    return f"{field}{fault_words(fault)}{found}"


def passage_name(passage_id: str) -> str:
    """A readable name from the id of a passage with an unknown title.

    >>> passage_name("laura-knight-0123456789ab")
    'laura knight'
    """
    return _ID_DIGEST.sub("", passage_id).replace("-", " ")


def unbroken(text: object) -> str:
    """Text of unknown origin, such as the name of a file, with its line breaks and tabs escaped."""
    return str(text).replace("\n", "\\n").replace("\t", "\\t")


def printable(text: object) -> str:
    """Text of unknown origin with its control characters escaped, so that none reaches a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in str(text))
