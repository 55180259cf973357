"""Which model's prices count for a call, and the most that it can come to."""

import json
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import get_args

from ..settings import Settings, Tier
from .exchange import Request
from .providers import EMBEDDED, Choice, providers
from .tariffs import ANY_PROVIDER, highest_price, million_token_prices

_FRAME_TOKENS = 64


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


def most_it_costs(
    request: Request, reply: str | None = None, *, model: str, prices: str | None, at: datetime
) -> Decimal | None:
    """The most that a call could cost, or, with its `reply`, could have cost; `None` without a known price."""
    prompt = _most_tokens(message.content for message in request.messages)
    if request.json_schema is not None:  # some endpoints write it into the prompt
        prompt += len(json.dumps(request.json_schema))
    completion = request.max_tokens if reply is None else min(_most_tokens([reply]), request.max_tokens)
    return highest_price(prompt, completion, model=model, prices=prices, at=at)


def _most_tokens(texts: Iterable[str]) -> int:
    """No tokenizer makes more tokens than there are bytes, and over digits or hieroglyphs some make as many."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + _FRAME_TOKENS
