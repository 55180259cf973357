"""What the failure of a call means: whether it is billed, what to leave out, and what the user can do."""

import math
import re
from collections.abc import Mapping, Set

from ...errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    LostConnectionError,
    MetaRagError,
    ModelError,
    RefusedError,
    TransientError,
    UnreachableError,
)
from ..pacing import requested_pause
from .http import HttpError

_TOO_MANY = 429
_PASSING = frozenset({408, 409, _TOO_MANY})
"""Statuses that may change by themselves, beside those of the server's own faults."""
_SERVER_FAULT = 500
_NO_QUOTA = "insufficient_quota"
_UNSUPPORTED = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed)|extra input"
)
_KEY_WORDS = "{where} rejected the key ({status}); check the key (`marag doctor` names its variable)."
_STATUS: Mapping[int, tuple[type[ModelError], str]] = {
    401: (AuthenticationError, _KEY_WORDS),
    403: (AuthenticationError, _KEY_WORDS),
    402: (
        BalanceError,
        "{where} reports that the account has no balance left ({status}); top it up, then resume",
    ),
    404: (
        RefusedError,
        "{where} does not know {model!r} or the path (404); check FLASH_MODEL, PRO_MODEL and the address.",
    ),
}


def translated(
    error: HttpError, *, where: str, model: str, late: bool = False, reports_balance: bool = False
) -> MetaRagError:
    """A failed call as an error of this package, with the remedy.

    `late` if there was no time for another attempt; `reports_balance` if `marag balance` can ask this provider.
    """
    if error.status is None:
        if error.broken and not error.sent:
            return RefusedError(f"The call to {where} cannot be sent: {error.words}.")
        if error.broken:
            return TransientError(f"{where} sent a reply that cannot be read: {error.words}; try again.")
        if error.sent:
            return LostConnectionError(
                f"{where} accepted the call, but the connection broke before the whole reply arrived; check that it is "
                "running (`marag doctor`), then try again."
            )
        return UnreachableError(
            f"{where} does not respond; check that it is running and that the address is right (`marag doctor`)."
        )
    if error.status in (400, 413) and _is_too_long(error):
        return ContextWindowError(
            f"The prompt exceeds the context window of {model!r} at {where}; lower EVIDENCE_TOKENS."
        )
    verb = "failed" if error.status >= _SERVER_FAULT else "rejected the call"
    usual = (RefusedError, f"{{where}} {verb} with {{status}}: {{said}}")
    kind, words = _STATUS[402] if _is_quota(error) else _STATUS.get(error.status, usual)
    advice = _advice(error, late=late)
    if kind is BalanceError:
        advice = " (`marag balance`)." if reports_balance else "."
    return kind(words.format(where=where, model=model, status=error.status, said=error.words) + advice)


def _advice(error: HttpError, *, late: bool) -> str:
    """What to do about a server that is busy or limits the rate of calls."""
    if not is_passing(error):
        return ""
    steps = []
    if (wished := requested_pause(error.headers)) is not None:
        steps.append(f"wait {math.ceil(wished)} s{' or raise LLM_TIMEOUT_SECONDS' if late else ''}")
    if error.status == _TOO_MANY:
        steps.append("lower the concurrency or raise LLM_MAX_RETRIES")
    first = f"{', '.join(steps)}, then " if steps else ""
    return f"; {first}try again"


def is_passing(error: HttpError) -> bool:
    """Did a call fail in a way that may be temporary and that no provider bills?"""
    if error.status is None:
        return not error.sent and not error.broken
    return (error.status in _PASSING or error.status >= _SERVER_FAULT) and not _is_quota(error)


def _is_quota(error: HttpError) -> bool:
    """Does a 429 say that the account is used up, as OpenAI's does, rather than that calls come too fast?"""
    return error.status == _TOO_MANY and _NO_QUOTA in {error.body.get("code"), error.body.get("type")}


def refused_parameter(error: HttpError, optional: Set[str]) -> str | None:
    """The optional parameter that a 400 or 422 reports as unsupported."""
    words = error.words.lower()
    if error.status not in (400, 422) or not _UNSUPPORTED.search(words):
        return None
    named = [name for name in optional if name == error.body.get("param") or re.search(rf"\b{name}\b", words)]
    return max(named, key=len, default=None)


def _is_too_long(error: HttpError) -> bool:
    marks = {str(error.body.get("code")), str(error.body.get("type"))}
    # DeepSeek and vLLM send a general code, with the reason only in the text
    said = "maximum context length" in error.words
    return said or bool(marks & {"context_length_exceeded", "exceed_context_size_error"})
