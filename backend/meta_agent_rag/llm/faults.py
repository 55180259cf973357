"""What the failure of a call means: whether it is worth another attempt, and what the user can do."""

import math
import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from pydantic import SecretStr

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
    WithheldError,
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
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported?|permitted|allowed)|extra input|deprecated"
)
_OTHER_FORMATS = re.compile(r"output[_ ](?:config|format)|response_schema")
"""What other providers call `response_format`."""
FORMAT = "response_format"
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})


def fault(error: Exception, endpoint: Endpoint) -> MetaRagError:
    """A failed call as an error of this package, with the remedy and without secrets."""
    if isinstance(error, MetaRagError):
        return error
    from langchain_core.exceptions import ContextOverflowError

    where, (status, body, words) = endpoint.where, _stated(error)
    marks, said = {str(body.get("code")), str(body.get("type"))}, words
    for secret in _secrets(endpoint):  # some servers repeat them
        if len(secret) >= _SHORTEST_SECRET:
            said = said.replace(secret, "***")
    # DeepSeek and vLLM send a general code, with the reason only in the text
    too_long = status in (400, 413) and ("maximum context length" in words or marks & _TOO_LONG)
    kind: type[ModelError] = RefusedError
    words = f"{where} rejected the call with {status}: {said}; correct the settings of the model."
    if "content_filter" in marks:
        return WithheldError(f"{where} stopped the call by its content filter; rephrase the question.")
    if too_long or isinstance(error, ContextOverflowError):
        kind = ContextWindowError
        words = f"The prompt exceeds the context window of {endpoint.model!r} at {where}; lower EVIDENCE_TOKENS."
    elif status is None:
        return _without_status(error, said, endpoint)
    elif status == 402 or (status == _TOO_MANY and "insufficient_quota" in marks):
        kind, advice = BalanceError, " (`marag balance`)" if endpoint.provider.reports_balance else ""
        words = f"{where} reports that the account has no balance left ({status}); top it up, then resume{advice}."
    elif status == 404 or "model_not_found" in marks:
        kind, check = UnknownModelError, "check FLASH_MODEL, PRO_MODEL and the address"
        words = f"{where} does not know {endpoint.model!r} or the path ({status}); {check}."
    elif status in (401, 403):
        kind = AuthenticationError
        words = f"{where} rejected the key ({status}); check the key (`marag doctor` names its variable)."
    elif status in _PASSING or status >= _SERVER_FAULT:
        pause = _retry_after(getattr(getattr(error, "response", None), "headers", None) or {})
        steps = [] if pause is None else [f"wait {math.ceil(pause)} s"]
        steps += ["lower the concurrency or raise LLM_MAX_RETRIES"] if status == _TOO_MANY else []
        verb = "failed" if status >= _SERVER_FAULT else "rejected the call"
        advice = f"{', '.join(steps)}, then try again" if steps else "try again"
        return BusyError(f"{where} {verb} with {status}: {said}; {advice}.", retry_after=pause)
    return kind(words)


def _secrets(endpoint: Endpoint) -> Iterator[str]:
    """The keys and headers of an endpoint, and of a caller's model."""
    given = list(vars(endpoint.given).values()) if endpoint.given is not None else []
    within = [value for one in given if isinstance(one, Mapping) for value in one.values()]
    for value in (endpoint.api_key, *endpoint.headers.values(), *given):
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
    yield from (value for value in within if isinstance(value, str))


def _stated(error: Exception) -> tuple[int | None, Mapping[str, Any], str]:
    """The status of a client's exception, if a response came that was no success, its body, and its message."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    stated = inner if isinstance(inner, Mapping) else {}
    words = " ".join(str(stated.get("message") or error).split())
    return status if isinstance(status, int) and status >= 300 else None, stated, words


def _without_status(error: Exception, said: str, endpoint: Endpoint) -> ModelError:
    """A call without a response, or with one that cannot be read."""
    names, where = set[str](), endpoint.where
    cause: BaseException | None = error
    while cause is not None:
        names.update(kind.__name__ for kind in type(cause).__mro__)
        cause = cause.__cause__ or cause.__context__
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
    if isinstance(error, _NO_COMPLETION) and not endpoint.is_langchain:
        return TransientError(f"{where} sent a reply that is not a chat completion; check the address (LLM_BASE_URL).")
    if "APIError" in names or "DecodingError" in names:  # of a stream, or of its encoding
        return TransientError(f"{where} sent a reply that cannot be read: {said[:200]}; try again.")
    return ModelError(f"{where} failed with {type(error).__name__}: {said[:200]}; correct or replace the model.")


def failed_generation(error: Exception) -> str | None:
    """What a model wrote that its server rejected as invalid JSON, as Groq reports it."""
    _, body, _ = _stated(error)
    written = body.get("failed_generation")
    return written if isinstance(written, str) and written else None


def refused_parameter(error: Exception, optional: Set[str]) -> str | None:
    """The optional parameter that a 400 or 422 reports as unsupported."""
    status, body, words = _stated(error)
    words = words.lower()
    if status not in (400, 422) or not _UNSUPPORTED.search(words):
        return None
    if FORMAT in optional and _OTHER_FORMATS.search(words):
        return FORMAT
    named = [name for name in optional if name == body.get("param") or re.search(rf"\b{name}\b", words)]
    return max(named, key=len, default=None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause that the server requests, in seconds; `None` without a valid one."""
    try:
        milliseconds, seconds = headers.get("retry-after-ms"), headers.get("retry-after", "")
        pause = float(seconds) if milliseconds is None else float(milliseconds) / 1000
    except ValueError:  # for instance, a date
        return None
    return pause if 0 < pause < math.inf else None
