"""Messages about faulty settings: a rejected value, a misspelt name, or a former name."""

import logging
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from .wording import fault_words

_LOG = logging.getLogger(__name__)
FORMER = {
    "metacognitive_convergence_threshold": "convergence_threshold",
    "service_rate_a_minute": "service_rate_per_minute",
    "service_wrong_keys_a_minute": "service_wrong_keys_per_minute",
    "service_upload_kb_a_second": "service_upload_kb_per_second",
}
"""Former names of settings, and what they are called now."""
_CLOSE = 0.85
"""Similarity (difflib's ratio) from which a name counts as misspelt: DEEPSEEK_KEY does, OPENAI_API_BASE does not."""


def fault(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """One sentence for the first rejected setting: its name, its value (secrets hidden), what to do."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    secret = name.endswith("_url") or (name in fields and "SecretStr" in str(fields[name].annotation))
    verdict = "has an invalid value" if secret else f"cannot be {first['input']!r}"
    return f"The setting {name.upper()} {verdict}: {fault_words(first)}."


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that this one may be a misspelling of; `None` if unlike any, or if it has an additional word."""
    found = get_close_matches(name, known, n=1, cutoff=_CLOSE)
    if not found or set(found[0].split("_")) < set(name.split("_")):  # e.g. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
        return None
    return found[0]


def known_as(name: str) -> AliasChoices:
    """The names under which a setting is read, the current one first."""
    return AliasChoices(name, *(former for former, now in FORMER.items() if now == name))


@cache  # warns once, although settings are read several times in a process
def todays_name(name: str) -> str:
    """The current name of a setting; a former name is reported once per process."""
    if name in FORMER:
        _LOG.warning("The setting %s is now called %s; its value is used.", name.upper(), FORMER[name].upper())
    return FORMER.get(name, name)


def say_former(written: Collection[str]) -> None:
    """Log each former name among the given ones, once per process."""
    for name in written:
        todays_name(name)


def warn_of_slips(written: Collection[str], known: Collection[str]) -> None:
    """Log each name in `.env` that is unknown but similar to a setting that is not set there, once per process."""
    for name in written:
        meant = None if name in known else nearest(name, known)
        if meant is not None and meant not in written:
            _warn(name.upper(), meant.upper())


@cache  # warns once, although settings are read several times in a process
def _warn(name: str, meant: str) -> None:
    _LOG.warning("Unknown setting %s in .env is ignored; did you mean %s?", name, meant)
