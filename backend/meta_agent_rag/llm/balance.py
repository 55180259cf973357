"""DeepSeek's balance API: GET /user/balance."""

import asyncio
from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from ..errors import InputError, RefusedError
from ..settings import Settings
from .chat import translated
from .providers import choose_provider

_SECONDS = 20.0


class BalanceInfo(BaseModel):
    """Money in one currency."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    currency: str
    total_balance: Decimal
    granted_balance: Decimal
    topped_up_balance: Decimal


class Balance(BaseModel):
    """The account: may it serve calls, and what is left."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    is_available: bool
    balance_infos: tuple[BalanceInfo, ...]


async def account_balance(settings: Settings) -> Balance:
    """The balance of the configured DeepSeek account; raises a `ModelError` with the remedy."""
    import openai

    choice = choose_provider(settings)
    if choice.provider.name != "deepseek" or choice.api_key is None:
        raise InputError("Only DeepSeek reports its balance; set DEEPSEEK_API_KEY (and LLM_PROVIDER=deepseek).")
    client = openai.AsyncOpenAI(base_url=choice.base_url, api_key=choice.api_key.get_secret_value(), max_retries=1)
    try:
        async with client, asyncio.timeout(_SECONDS):
            return Balance.model_validate(await client.get("/user/balance", cast_to=object))
    except openai.APIError as error:
        raise translated(error, where=f"DeepSeek at {choice.base_url}", model="-") from None
    except TimeoutError:
        raise RefusedError(
            f"DeepSeek at {choice.base_url} did not report its balance within {_SECONDS:.0f} s; try again."
        ) from None
    except ValueError:
        raise RefusedError(
            f"The reply of {choice.base_url} is not a balance; check that it is DeepSeek's address."
        ) from None
