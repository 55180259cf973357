"""Assembles a language model from the settings."""

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import get_args

from ..settings import Settings, Tier
from .budget import Budget
from .cache import ResponseCache
from .client import LanguageModel
from .embedded import embedded_model_file
from .endpoints.connections import Connections, OneTransport, OpenConnections
from .endpoints.stages import CHAT, Use, endpoints_in_use
from .ledger import Ledger
from .local.choice import decided, own_model_file
from .providers import Endpoint, choose_provider
from .transport import Transport

_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def open_language_model(
    settings: Settings,
    *,
    ledger_path: Path | None = None,
    paid_usd: Decimal = Decimal(0),
    reservations: Path | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[LanguageModel]:
    """The model chosen by the settings, closed at the end.

    `paid_usd` is what an earlier part of the same run has paid, counted against its cost limit;
    `reservations` is a file with the maximum cost of calls in progress.
    `transport` replaces the provider's, for tests and offline work.
    """
    settings = decided(settings)
    choice = choose_provider(settings)
    cache = ResponseCache(settings.marag_data_dir / "responses.sqlite") if settings.response_cache else None
    connections: Connections
    if transport is None:
        _LOG.info("Model: %s.", described(settings))
        for endpoint in endpoints_in_use(settings).values():
            endpoint.require_key()
        connections = OpenConnections(settings=settings, cache=cache)
    else:
        connections = OneTransport(transport=transport)
    model = LanguageModel(
        settings=settings,
        choice=choice,
        connections=connections,
        ledger=Ledger(path=ledger_path or settings.marag_data_dir / "ledger.jsonl"),
        budget=Budget.under(settings.cost_limit_usd, paid_usd=paid_usd, journal=reservations),
        cache=cache,
    )
    try:
        yield model
    finally:
        await model.aclose()


def described(settings: Settings, uses: Collection[Use] = CHAT) -> str:
    """The serving model, its place, the reason for the choice, and the models of individual roles, in one line.

    Raises `SettingsError` if the embedded model is chosen and not installed.
    """
    used = endpoints_in_use(settings, uses)
    models: dict[str, list[str]] = {}
    for endpoint in used.values():
        if endpoint.name in get_args(Tier) and endpoint.model not in models.setdefault(_place(endpoint, settings), []):
            models[_place(endpoint, settings)].append(endpoint.model)
    served = ", ".join(f"{' and '.join(names)} {place}" for place, names in models.items())
    others = [
        f"{role}: {endpoint.model} {_place(endpoint, settings)}"
        for role, endpoint in used.items()
        if endpoint.name not in get_args(Tier)
    ]
    return "; ".join([*filter(None, [served]), choose_provider(settings).reason, *others])


def _place(endpoint: Endpoint, settings: Settings) -> str:
    if not endpoint.is_embedded:
        return f"at {endpoint.place}"
    embedded_model_file(settings)
    small = own_model_file(settings) is None
    return "on this machine, a very small model (`marag models` lists better ones)" if small else "on this machine"
