"""Puts a language model together from settings."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

from ..settings import Settings
from .budget import Budget
from .cache import ResponseCache
from .chat import ChatTransport
from .client import LanguageModel
from .embedded import EmbeddedTransport, embedded_model_file
from .exchange import Transport
from .ledger import Ledger
from .providers import EMBEDDED, Choice, choose_provider

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
    """The model that settings choose, closed at the end.

    `paid_usd` is what an earlier part of the same run has paid, counted against its cost limit;
    `reservations` is a file that holds what calls in progress could cost.
    `transport` replaces the provider's, for tests and offline work.
    """
    choice = choose_provider(settings)
    if transport is None:
        _LOG.info("Model: %s.", described(choice, settings))
    model = LanguageModel(
        settings=settings,
        choice=choice,
        transport=transport or _transport(choice, settings),
        ledger=Ledger(path=ledger_path or settings.marag_data_dir / "ledger.jsonl"),
        budget=Budget.under(settings.cost_limit_usd, paid_usd=paid_usd, journal=reservations),
        cache=ResponseCache(settings.marag_data_dir / "responses.sqlite") if settings.response_cache else None,
    )
    try:
        yield model
    finally:
        await model.aclose()


def described(choice: Choice, settings: Settings) -> str:
    """The provider, its models and why it was taken, in one line."""
    if choice.provider.name == EMBEDDED:
        embedded_model_file(settings)
        size = "" if settings.embedded_model_path else ", a real but very small model"
        return f"{choice.models['flash']} on this machine{size}; {choice.reason}"
    models = " and ".join(dict.fromkeys(choice.models.values()))
    return f"{models} at {choice.provider.label}; {choice.reason}"


def _transport(choice: Choice, settings: Settings) -> Transport:
    if choice.provider.name == EMBEDDED:
        return EmbeddedTransport(choice, settings)
    return ChatTransport(choice, max_retries=settings.llm_max_retries)
