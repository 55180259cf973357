"""Connections to endpoints: which chat model serves each, and the identity under which its replies are cached."""

import asyncio
import hashlib
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from ..errors import BusyError, InputError, ModelError, RefusedError, UnreachableError
from ..settings import Settings
from .chat import Connection, without_retries
from .embedded import EmbeddedConnection
from .faults import fault
from .providers import Endpoint, choose_provider, providers

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_SECONDS = 10.0
_OF_THE_CONNECTION = {"max_retries", "timeout", "request_timeout", "default_request_timeout"}
_SLOW_SECONDS, _PAUSE_SECONDS = 1.0, 60.0
"""A server that took so long and did not say what it serves is not asked again for so long."""


@dataclass(frozen=True, kw_only=True)
class Connections:
    """Connections to endpoints, each opened at its first call; `stand_in` is a scripted model that plays all of them.

    A server at a custom address is asked what it serves, and this is the identity of its replies, so that they are
    found again after it has moved.
    """

    settings: Settings
    stand_in: "BaseChatModel | None" = None
    _known: dict[tuple[object, ...], Connection] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def to(self, endpoint: Endpoint) -> Connection:
        """The connection to an endpoint; raises `SettingsError` if a key or a file is missing."""
        address = endpoint.base_url, endpoint.api_key, *endpoint.headers.items()
        key = endpoint.provider.name, endpoint.provider.json_mode, endpoint.model, id(endpoint.given), address
        if (known := self._known.get(key)) is not None and time.monotonic() < known.ask_again:
            return known
        async with self._opening:  # only once, even for concurrent first calls
            if key not in self._known:
                self._known[key] = self._opened(endpoint)
            known = self._known[key]
            if (began := time.monotonic()) >= known.ask_again:
                try:
                    known.identity, known.ask_again = identity(endpoint, await _reported(endpoint)), math.inf
                except ModelError:  # it may still be starting
                    now = time.monotonic()
                    pause = _PAUSE_SECONDS if now - began > _SLOW_SECONDS else 0.0
                    known.identity, known.ask_again = endpoint.base_url or "", now + pause
            return known

    async def aclose(self) -> None:
        """Close every connection that was opened, but not a caller's models."""
        for connection in self._known.values():
            if self.stand_in is None and connection.endpoint.given is None:
                await connection.aclose()

    def _opened(self, endpoint: Endpoint) -> Connection:
        from langchain_core.language_models import BaseChatModel

        model = self.stand_in or endpoint.given
        if model is not None:  # its class, its address and its parameters identify it
            about = model._get_ls_params()
            address = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
            own = f"{about.get('ls_provider') or type(model).__name__}:"
            own_fields = type(model).model_fields.keys() - BaseChatModel.model_fields.keys() - _OF_THE_CONNECTION
            fields = {name: getattr(model, name) for name in own_fields}
            plain = _plain(fields)
            own += _digest([about, model._identifying_params, address, type(model).__qualname__, plain])
            if not (about.get("ls_model_name") or model._identifying_params) and len(plain) < len(fields):
                own += uuid4().hex  # what tells it from others of its class cannot be seen: nothing is shared
            return Connection(
                endpoint=endpoint,
                identity="scripted" if model is self.stand_in else own,
                model=without_retries(model),
            )
        endpoint.require()
        if endpoint.is_embedded:
            return EmbeddedConnection.of(endpoint, self.settings)
        if endpoint.has_own_address:
            return Connection(endpoint=endpoint, identity="", ask_again=0.0)
        return Connection(endpoint=endpoint, identity=identity(endpoint, {}))


def _plain(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields with values of JSON's: neither clients nor secrets."""
    found: dict[str, object] = {}
    for name, value in fields.items():
        with suppress(TypeError, ValueError):
            json.dumps(value)
            found[name] = value
    return found


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


async def fetched(endpoint: Endpoint, path: str) -> Any:
    """The JSON that an endpoint's server sends for a path. Raises a `ModelError`."""
    import httpx2

    headers = {name: value.get_secret_value() for name, value in endpoint.headers.items()}
    if endpoint.api_key is not None:
        headers["authorization"] = f"Bearer {endpoint.api_key.get_secret_value()}"
    try:
        async with httpx2.AsyncClient(timeout=_SECONDS, headers=headers) as client, asyncio.timeout(_SECONDS):
            response = await client.get((endpoint.base_url or "").rstrip("/") + path)
            return response.raise_for_status().json()
    except TimeoutError as error:
        raise fault(ConnectionError("no reply"), endpoint) from error
    except Exception as error:
        raise fault(error, endpoint) from error


async def _reported(endpoint: Endpoint) -> Mapping[str, Any]:
    """A server's report on a model's weights (`GET /models`): vLLM's `root`, llama.cpp's `meta`; empty if missing.

    Raises a `ModelError` if it does not respond.
    """
    try:
        listed = await fetched(endpoint, "/models")
    except (UnreachableError, BusyError):
        raise
    except ModelError:
        return {}  # it responds, but does not list models
    rows = listed.get("data") if isinstance(listed, Mapping) else None
    rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    named = [row for row in rows if row.get("id") == endpoint.model]
    row = named[0] if named else rows[0] if len(rows) == 1 else {}
    found: dict[str, Any] = {}
    if isinstance(root := row.get("root"), str):
        found["root"] = PurePath(root).name  # the same weights may be in another folder on another node
    if isinstance(meta := row.get("meta"), Mapping):
        found["meta"] = {name: value for name, value in meta.items() if name != "n_ctx"}  # chosen at the start
    return found


def identity(endpoint: Endpoint, report: Mapping[str, Any]) -> str:
    """The stable name of an endpoint: the address if it is the provider's own, else provider and report."""
    if endpoint.is_langchain:
        return endpoint.provider.name
    standard = providers()[endpoint.provider.name]
    name = endpoint.base_url or ""
    if endpoint.has_own_address:
        name = f"{standard.name}:{_digest(report)}" if report else standard.name
    mode = endpoint.provider.json_mode
    return name if mode == standard.json_mode else f"{name}/json_mode={mode}"


class BalanceInfo(BaseModel, frozen=True, extra="ignore"):
    """An amount in one currency."""

    currency: str
    total_balance: Decimal
    granted_balance: Decimal
    topped_up_balance: Decimal


class Balance(BaseModel, frozen=True, extra="ignore"):
    """DeepSeek's account: whether it can serve calls, and its balance."""

    is_available: bool
    balance_infos: tuple[BalanceInfo, ...]


async def account_balance(settings: Settings) -> Balance:
    """The balance of the configured DeepSeek account (GET /user/balance); raises a `ModelError` with the remedy."""
    flash = choose_provider(settings).tiers["flash"]
    if not flash.provider.reports_balance or flash.api_key is None:
        raise InputError("Only DeepSeek reports its balance; set DEEPSEEK_API_KEY (and LLM_PROVIDER=deepseek).")
    try:
        return Balance.model_validate(await fetched(flash, "/user/balance"))
    except ValidationError:
        raise RefusedError(
            f"The reply of {flash.base_url} is not a balance; check that it is DeepSeek's address."
        ) from None
