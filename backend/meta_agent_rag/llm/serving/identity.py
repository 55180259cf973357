"""What a server says of the model behind it, so that a reply is known again at another address."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..providers import Endpoint, providers

if TYPE_CHECKING:
    import openai

_SHAPING = ("json_mode", "limit", "seeds")
_OF_THE_NODE = ("n_ctx",)
"""What llama.cpp tells of a model and an administrator chooses: it changes no reply."""


async def reported(client: "openai.AsyncOpenAI", model: str) -> Mapping[str, Any]:
    """What `GET /models` tells of a model's weights: vLLM's `root`, llama.cpp's `meta`; empty where nothing is told.

    Raises the SDK's errors.
    """
    listed = await client.get("/models", cast_to=object)
    rows = listed.get("data") if isinstance(listed, Mapping) else None
    rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    named = [row for row in rows if row.get("id") == model]
    row = named[0] if named else rows[0] if len(rows) == 1 else {}
    found: dict[str, Any] = {}
    if isinstance(root := row.get("root"), str):
        found["root"] = PurePath(root).name  # the same weights may lie in another folder on another node
    if isinstance(meta := row.get("meta"), Mapping):
        found["meta"] = {name: value for name, value in meta.items() if name not in _OF_THE_NODE}
    return found


def identity(endpoint: Endpoint, report: Mapping[str, Any]) -> str:
    """The stable name of what answers: the address where that is the provider's own, else provider and report."""
    standard = providers()[endpoint.provider.name]
    if not endpoint.has_own_address:
        name = endpoint.base_url or ""
    else:
        digest = hashlib.sha256(json.dumps(report, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{standard.name}:{digest}" if report else standard.name
    shaped = [field for field in _SHAPING if getattr(endpoint.provider, field) != getattr(standard, field)]
    return "/".join([name, *(f"{field}={getattr(endpoint.provider, field)}" for field in shaped)])
