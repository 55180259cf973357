"""A refusal in the format of OpenAI's API: the same sentence, with the types and codes that its clients check."""

from collections.abc import Mapping
from typing import Any

from ...errors import RequestError

ADDRESSES = ("/v1/models", "/v1/chat/")
_CODES: Mapping[str, str] = {
    "missing_key": "invalid_api_key",
    "invalid_key": "invalid_api_key",
    "unknown_corpus": "model_not_found",
    "rate_limited": "rate_limit_exceeded",
    "daily_cost_cap": "insufficient_quota",
}
_TYPES: Mapping[int, str] = {403: "permission_error", 429: "rate_limit_error"}
_FINAL = {"timeout", "daily_cost_cap", "unpriced_model"}


def speaks_openai(path: str) -> bool:
    """Do errors at this address use this format?"""
    return path.startswith(ADDRESSES)


def as_openai(error: RequestError) -> RequestError:
    """The refusal with the status that these clients expect: 400 instead of this service's 422."""
    if error.status == 422:
        return RequestError(400, error.code, str(error), param=error.param)
    if error.code == "unknown_corpus":
        return RequestError(404, error.code, str(error), param="model")
    return error


def fault(error: RequestError) -> dict[str, Any]:
    """The response body of a refusal."""
    kind = _TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error")
    code = None if error.code == "invalid_request" else _CODES.get(error.code, error.code)
    return {"error": {"message": str(error), "type": kind, "param": error.param, "code": code}}


def retry_headers(error: RequestError) -> dict[str, str]:
    """Headers that keep these clients from retrying immediately if that would not help."""
    return {"x-should-retry": "false"} if error.code in _FINAL else {}
