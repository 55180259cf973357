"""What the failure of a call means: whether it is worth another attempt, and what the user can do."""

import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from email.utils import parsedate_to_datetime
from typing import Any

from ..errors import (
    AuthenticationError,
    BalanceError,
    BusyError,
    ContextWindowError,
    LostConnectionError,
    MetaRagError,
    ModelError,
    RefusedError,
    TransientError,
    UnknownModelError,
    UnreachableError,
)
from .providers import Endpoint

_TOO_MANY = 429
_PASSING = frozenset({408, 409, _TOO_MANY})
"""Statuses that may change by themselves, beside those of the server's own faults."""
_SERVER_FAULT = 500
_SHORTEST_SECRET = 6
"""The fewest characters of a header's value that is masked in errors: shorter ones, such as "1", are parts of words."""
_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "ConnectionError"})
_NEVER_SENT = frozenset({"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"})
_LOST = frozenset(
    {
        *("ReadError", "WriteError", "CloseError", "RemoteProtocolError", "ReadTimeout", "WriteTimeout"),
        *("ConnectionResetError", "ConnectionAbortedError", "BrokenPipeError"),
    }
)
"""Exceptions of httpx and httpx2, which every LangChain integration checked here uses."""
_NO_COMPLETION = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_UNSUPPORTED = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed)|extra input"
)
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})


class _Failure:
    """What an exception of any client says: `status` of the response, if there was one, `words`, and `marks`."""

    def __init__(self, error: Exception) -> None:
        self.response = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(self.response, "status_code", None)
        self.status = status if isinstance(status, int) and status >= 300 else None  # a faulty reply comes with 200
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, Mapping) else None
        self.body: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        self.words = " ".join(str(self.body.get("message") or error).split())
        self.marks = {str(self.body.get("code")), str(self.body.get("type"))}

    @property
    def retry_after(self) -> float | None:
        """The pause that the server requests, in seconds; `None` without a valid one."""
        seconds = _retry_after(getattr(self.response, "headers", None) or {})
        return seconds if seconds is not None and 0 < seconds < math.inf else None

    @property
    def is_quota(self) -> bool:
        """Whether a 429 says that the account is used up, rather than that calls come too fast."""
        return self.status == _TOO_MANY and "insufficient_quota" in self.marks

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt does not fit; DeepSeek and vLLM send a general code, with the reason only in the text."""
        return self.status in (400, 413) and ("maximum context length" in self.words or bool(self.marks & _TOO_LONG))


def fault(error: Exception, endpoint: Endpoint) -> MetaRagError:
    """A failed call as an error of this package, with the remedy and without secrets."""
    if isinstance(error, MetaRagError):
        return error
    from langchain_core.exceptions import ContextOverflowError

    seen = _Failure(error)
    said = _masked(seen.words, endpoint)
    if seen.is_too_long or isinstance(error, ContextOverflowError):
        return ContextWindowError(
            f"The prompt exceeds the context window of {endpoint.model!r} at {endpoint.where}; lower EVIDENCE_TOKENS."
        )
    if seen.status is None:
        return _without_status(error, said, endpoint)
    return _of_status(seen, seen.status, said, endpoint)


def _of_status(seen: _Failure, status: int, said: str, endpoint: Endpoint) -> ModelError:
    where = endpoint.where
    kind: type[ModelError] = RefusedError
    words = f"{where} rejected the call with {status}: {said}; correct the settings of the model."
    if seen.is_quota or status == 402:
        advice = " (`marag balance`)" if endpoint.provider.reports_balance else ""
        words = f"{where} reports that the account has no balance left ({status}); top it up, then resume{advice}."
        kind = BalanceError
    elif status == 404 or "model_not_found" in seen.marks:
        check = "check FLASH_MODEL, PRO_MODEL and the address"
        words = f"{where} does not know {endpoint.model!r} or the path ({status}); {check}."
        kind = UnknownModelError
    elif status in (401, 403):
        words = f"{where} rejected the key ({status}); check the key (`marag doctor` names its variable)."
        kind = AuthenticationError
    elif status in _PASSING or status >= _SERVER_FAULT:
        steps = [] if seen.retry_after is None else [f"wait {math.ceil(seen.retry_after)} s"]
        steps += ["lower the concurrency or raise LLM_MAX_RETRIES"] if status == _TOO_MANY else []
        verb = "failed" if status >= _SERVER_FAULT else "rejected the call"
        advice = ", then ".join([*([", ".join(steps)] if steps else []), "try again"])
        return BusyError(f"{where} {verb} with {status}: {said}; {advice}.", retry_after=seen.retry_after)
    return kind(words)


def _without_status(error: Exception, said: str, endpoint: Endpoint) -> ModelError:
    """A call without a response, or with one that cannot be read."""
    names = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    where = endpoint.where
    if names & _NEVER_SENT:
        return RefusedError(f"The call to {where} cannot be sent: {said}; check the address.")
    if names & _LOST:
        return LostConnectionError(
            f"{where} accepted the call, but the connection broke before the whole reply arrived; check that it is "
            "running (`marag doctor`), then try again."
        )
    if names & _NOT_SENT:
        return UnreachableError(
            f"{where} does not respond; check that it is running and that the address is right (`marag doctor`)."
        )
    if isinstance(error, _NO_COMPLETION) and not endpoint.integration:
        return TransientError(f"{where} sent a reply that is not a chat completion; check the address (LLM_BASE_URL).")
    if "APIError" in names or "DecodingError" in names:  # of a stream, or of its encoding
        return TransientError(f"{where} sent a reply that cannot be read: {said[:200]}; try again.")
    return ModelError(f"{where} failed with {type(error).__name__}: {said[:200]}; correct or replace the model.")


def refused_parameter(error: Exception, optional: Set[str]) -> str | None:
    """The optional parameter that a 400 or 422 reports as unsupported."""
    seen = _Failure(error)
    words = seen.words.lower()
    if seen.status not in (400, 422) or not _UNSUPPORTED.search(words):
        return None
    named = [name for name in optional if name == seen.body.get("param") or re.search(rf"\b{name}\b", words)]
    return max(named, key=len, default=None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _masked(words: str, endpoint: Endpoint) -> str:
    """The words without the key and the values of headers, which some servers repeat."""
    secrets: Iterable[Any] = (endpoint.api_key, *endpoint.headers.values())
    for secret in (one.get_secret_value() for one in secrets if one is not None):
        if len(secret) >= _SHORTEST_SECRET:
            words = words.replace(secret, "***")
    return words


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds, as milliseconds, seconds or a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return float(milliseconds) / 1000
        after = headers.get("retry-after")
        if after is None:
            return None
        if after.replace(".", "", 1).isdigit():
            return float(after)
        return parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
