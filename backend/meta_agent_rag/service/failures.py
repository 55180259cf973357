"""Maps every failure to a status, a code and one clear sentence; details not meant for the client stay in the log."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ..errors import (
    AuthenticationError,
    BalanceError,
    BudgetError,
    CorpusError,
    DeadlineError,
    ExtensionError,
    InputError,
    MetaRagError,
    ModelError,
    RequestError,
    SettingsError,
    StructuredOutputError,
)
from ..text.normalise import encodable
from ..wording import fault_words
from .request import RequestContext

_LOG = logging.getLogger(__name__)
TIMED_OUT = "Query processing timed out. Try a simpler question."
_PROVIDER_REFUSED = "The language model's provider refused the request; tell the service's operator the request id."
_UNUSABLE = (
    "The language model's reply could not be used; ask differently, or tell the service's operator the request id."
)
_UNSTORED = "The service cannot store anything at the moment; try again later."
_FAILED = "The service failed; tell its operator the request id."
_MOST_WORDS = 300
_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request", "The body cannot be read; send JSON in UTF-8, or files as multipart/form-data."),
    404: ("not_found", "Nothing exists at this address; GET /openapi.json lists all addresses."),
    405: ("method_not_allowed", "This address does not support this method; GET /openapi.json lists those it does."),
}
_KINDS: tuple[tuple[type[BaseException], int, str, str], ...] = (
    (DeadlineError, 504, "timeout", TIMED_OUT),
    (TimeoutError, 504, "timeout", TIMED_OUT),
    (CorpusError, 503, "search_unavailable", "The documents cannot be searched at the moment; try again later."),
    (SettingsError, 503, "unavailable", "The service is not configured correctly; tell its operator the request id."),
    (BudgetError, 503, "budget", "The service has reached its spending limit; tell its operator."),
    (AuthenticationError, 503, "model_key_refused", _PROVIDER_REFUSED),
    (BalanceError, 503, "model_balance_empty", _PROVIDER_REFUSED),
    (StructuredOutputError, 503, "model_reply_unusable", _UNUSABLE),
    (ModelError, 503, "model_unavailable", "The language model is not responding at the moment; try again later."),
    (ExtensionError, 500, "internal_error", _FAILED),
    (MetaRagError, 503, "unavailable", "The service cannot answer at the moment; try again later."),
    (OSError, 503, "unavailable", _UNSTORED),
    (SQLAlchemyError, 503, "unavailable", _UNSTORED),
)
_FINAL = frozenset({"timeout", "daily_cost_cap", "unpriced_model"})
"""Refusals that another attempt would not change, which OpenAI's clients must be told."""
_BODY_UNREAD = frozenset({401, 408, 413})
"""Refusals after which a client may continue sending, so the connection is closed."""


def timed_out() -> RequestError:
    """The refusal of a request that exceeded its deadline."""
    return RequestError(504, "timeout", TIMED_OUT)


def as_response(context: RequestContext, error: BaseException) -> JSONResponse:
    """A failure as a response; its code is added to the request's context."""
    refused = noted(context, error)
    headers = dict((isinstance(error, HTTPException) and error.headers) or {})
    if refused.retry_after is not None:
        headers["retry-after"] = str(refused.retry_after)
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refused.status in _BODY_UNREAD:
        headers["connection"] = "close"
    if refused.code in _FINAL:
        headers["x-should-retry"] = "false"
    return JSONResponse(envelope(refused, context.request_id), status_code=refused.status, headers=headers)


def noted(context: RequestContext, error: BaseException) -> RequestError:
    """The refusal for the client; the request's context receives its code and the real cause.

    Of a rejected body, it receives only what the client is told: field and fault, no values.
    """
    refused = refusal(error)
    context.error = refused.code
    # pydantic's own text repeats the rejected values, which may be secret
    cause = refused if isinstance(error, RequestValidationError) else error
    context.message = f"{type(cause).__name__}: {cause}"[:1000]
    if refused.code in {"model_key_refused", "model_balance_empty"}:  # only the operator can resolve them
        _LOG.error("%s", error, extra={"fields": {"request_id": context.request_id, "error": refused.code}})
    return refused


def refusal(error: BaseException) -> RequestError:
    """The refusal sent to the client for any failure."""
    cause = error.__cause__
    if isinstance(cause, MetaRagError | OSError) and not isinstance(error, MetaRagError):
        error = cause  # the framework raises an error of its own instead
    if isinstance(error, RequestError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        code, words = _STATUS.get(error.status_code, ("refused", f"The request was refused ({error.status_code})."))
        return RequestError(error.status_code, code, words)
    if isinstance(error, InputError) and not isinstance(error, SettingsError):
        return RequestError(422, "invalid_request", str(error)[:_MOST_WORDS])
    for kind, status, code, words in _KINDS:
        if isinstance(error, kind):
            return RequestError(status, code, words)
    return RequestError(500, "internal_error", _FAILED)


def envelope(error: RequestError, request_id: str) -> dict[str, Any]:
    """The response body of a refusal, in a form that OpenAI's clients understand, too."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {"error": {"code": error.code, "message": str(error), "type": kind, "request_id": request_id}}


def _invalid(error: RequestValidationError) -> RequestError:
    fault = error.errors()[0]
    if isinstance(error.body, bytes):
        words = "The body must be JSON; send it with the header Content-Type: application/json."
        return RequestError(422, "invalid_request", words)
    if fault["type"] == "json_invalid":
        return RequestError(422, "invalid_request", "The body is not JSON; send one JSON object.")
    place = ".".join(str(part)[:40] for part in fault["loc"][1:])
    named = f"The field {place!r} is invalid" if place else "The request is invalid"
    return RequestError(422, "invalid_request", encodable(f"{named}: {fault_words(fault)}.")[:_MOST_WORDS])
