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
_WANTED: Mapping[str, str] = {
    "missing": "it is missing",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "finite_number": "it must be a finite number",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
    "literal_error": "it must be {expected}",
    "enum": "it must be {expected}",
    "string_pattern_mismatch": "it must match the pattern {pattern}",
    "string_unicode": "it must be text in valid Unicode",
    "json_invalid": "it is not JSON",
}
"""The message for a fault of that type; braces are filled from pydantic's context."""
SESSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,47}$"
_PATTERNS: Mapping[str, str] = {
    SESSION_PATTERN: (
        "it must have 1 to 48 letters, digits, dots, dashes or underscores, beginning with a letter or digit"
    ),
}
"""What a pattern says, for readers who know no regular expressions."""
_WITHOUT_VALUE = frozenset({"missing", "extra_forbidden", "unexpected_keyword_argument"})
_LENGTHS: Mapping[str, tuple[str, str, str, str]] = {
    "string_too_short": ("at least", "min_length", "character", ""),
    "string_too_long": ("at most", "max_length", "character", ""),
    "too_short": ("at least", "min_length", "entry", "entries"),
    "too_long": ("at most", "max_length", "entry", "entries"),
}
"""Faults of length: the bound, pydantic's name for it, and the counted unit."""
_KINDS: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text",
    "bytes": "text",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "dataclass": "an object",
    "date": "a date",
    "datetime": "a date with its time",
    "timezone": "a date with its time and time zone",
}
"""The expected kind of value for a fault whose type has this prefix, as in `int_parsing` and `int_type`."""


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
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    if (words := _PATTERNS.get(str(context.get("pattern")))) is not None:
        return words
    if kind in _LENGTHS:
        bound, length, noun, plural = _LENGTHS[kind]
        return f"it must have {bound} {counted(context.get(length, 0), noun, plural)}"
    if kind in _WANTED:
        try:
            return _WANTED[kind].format_map({name: _short(value) for name, value in context.items()})
        except KeyError:  # a fault with less context than others of its type
            return _plain(str(fault["msg"]))
    beginnings = [kind.rsplit("_", ends)[0] for ends in range(1, kind.count("_") + 1)]
    known = next((_KINDS[beginning] for beginning in beginnings if beginning in _KINDS), None)
    return f"it must be {known}" if known else _plain(str(fault["msg"]))


def first_fault(error: "ValidationError", *, with_value: bool = True) -> str:
    """The first fault of a value: the field, the fault, and the value found, unless it may be secret.

    >>> first_fault(fault_of({"rows": [{"f1": "high"}]}))  # doctest: +SKIP
    "field 'rows[0].f1': it must be a number, found 'high'"
    """
    fault = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    field = f"field {place!r}: " if place else ""
    shown = with_value and fault["type"] not in _WITHOUT_VALUE
    found = f", found {reprlib.repr(fault['input'])}" if shown else ""
    return f"{field}{fault_words(fault)}{found}"


def _short(value: object) -> object:
    """A bound in its usual notation: 1, not 1.0."""
    return f"{value:g}" if isinstance(value, float) else value


def _plain(message: str) -> str:
    said = message.removeprefix("Value error, ").removeprefix("Assertion failed, ").rstrip(".")
    return said.replace("Input should be", "it must be")


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
