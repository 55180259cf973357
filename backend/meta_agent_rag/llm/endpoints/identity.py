"""The identity of the model behind a server, so that replies are found again at another address."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ..providers import Endpoint, providers
from .http import HttpClient

_SHAPING = ("json_mode", "limit", "seeds")
_OF_THE_NODE = ("n_ctx",)
"""Properties in llama.cpp's report that an administrator chooses and that do not affect replies."""


async def reported(client: HttpClient, model: str) -> Mapping[str, Any]:
    """A server's report on a model's weights (`GET /models`): vLLM's `root`, llama.cpp's `meta`; empty if missing.

    Raises an `HttpError`.
    """
    listed = await client.get("/models")
    rows = listed.get("data") if isinstance(listed, Mapping) else None
    rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    named = [row for row in rows if row.get("id") == model]
    row = named[0] if named else rows[0] if len(rows) == 1 else {}
    found: dict[str, Any] = {}
    if isinstance(root := row.get("root"), str):
        found["root"] = PurePath(root).name  # the same weights may be in another folder on another node
    if isinstance(meta := row.get("meta"), Mapping):
        found["meta"] = {name: value for name, value in meta.items() if name not in _OF_THE_NODE}
    return found


def identity(endpoint: Endpoint, report: Mapping[str, Any]) -> str:
    """The stable name of the endpoint: the address if it is the provider's own, else provider and report."""
    standard = providers()[endpoint.provider.name]
    if not endpoint.has_own_address:
        name = endpoint.base_url or ""
    else:
        digest = hashlib.sha256(json.dumps(report, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{standard.name}:{digest}" if report else standard.name
    shaped = [field for field in _SHAPING if getattr(endpoint.provider, field) != getattr(standard, field)]
    return "/".join([name, *(f"{field}={getattr(endpoint.provider, field)}" for field in shaped)])
