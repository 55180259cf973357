"""Puts a language model together from settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

from ..settings import Settings
from .budget import Budget
from .cache import ResponseCache
from .chat import ChatTransport
from .client import LanguageModel
from .embedded import EmbeddedTransport
from .exchange import Transport
from .ledger import Ledger
from .providers import EMBEDDED, Choice, choose_provider


@asynccontextmanager
async def open_language_model(
    settings: Settings,
    *,
    ledger_path: Path | None = None,
    paid_usd: Decimal = Decimal(0),
    transport: Transport | None = None,
) -> AsyncIterator[LanguageModel]:
    """The model that settings choose, closed at the end.

    `paid_usd` is what an earlier part of the same run has paid, counted against its cost limit.
    `transport` replaces the provider's, for tests and offline work.
    """
    choice = choose_provider(settings)
    limit = None if settings.cost_limit_usd is None else Decimal(str(settings.cost_limit_usd))
    model = LanguageModel(
        settings=settings,
        choice=choice,
        transport=transport or _transport(choice, settings),
        ledger=Ledger(path=ledger_path or settings.marag_data_dir / "ledger.jsonl"),
        budget=Budget(limit_usd=limit, paid_usd=paid_usd),
        cache=ResponseCache(settings.marag_data_dir / "responses.sqlite") if settings.response_cache else None,
    )
    try:
        yield model
    finally:
        await model.aclose()


def _transport(choice: Choice, settings: Settings) -> Transport:
    if choice.provider.name == EMBEDDED:
        return EmbeddedTransport(choice, settings)
    return ChatTransport(choice, max_retries=settings.llm_max_retries)
