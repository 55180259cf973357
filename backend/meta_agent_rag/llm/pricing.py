"""Which model's prices count for a call."""

from datetime import datetime
from typing import get_args

from ..settings import Settings, Tier
from .providers import EMBEDDED, Choice, providers
from .tariffs import ANY_PROVIDER, million_token_prices


def priced_model(settings: Settings, choice: Choice, tier: Tier, *, at: datetime) -> tuple[str, str | None]:
    """The model whose prices count, and its provider's name in genai-prices; PRICE_AS replaces both."""
    wanted = settings.price_as
    if not wanted:
        return choice.models[tier], choice.provider.prices
    other = providers().get(wanted)
    if other is not None and (model := other.default_model(tier)):
        return model, other.prices
    lists = (choice.provider.prices, *(known.prices for known in providers().values()), ANY_PROVIDER)
    return wanted, next((prices for prices in lists if prices and million_token_prices(wanted, prices, at)), None)


def unpriced_models(settings: Settings, choice: Choice, *, at: datetime) -> tuple[str, ...]:
    """The models of a run without a known price; the embedded one costs nothing and needs none."""
    if choice.provider.name == EMBEDDED:
        return ()
    priced = [priced_model(settings, choice, tier, at=at) for tier in get_args(Tier)]
    return tuple(name for name, prices in dict.fromkeys(priced) if million_token_prices(name, prices, at) is None)
