"""DeepSeek's balance API (GET /user/balance)."""

from decimal import Decimal

from pydantic import BaseModel, ValidationError

from ..errors import InputError, RefusedError
from ..settings import Settings
from .connections import fetched
from .providers import choose_provider

_SECONDS = 20.0


class BalanceInfo(BaseModel, frozen=True, extra="ignore"):
    """An amount in one currency."""

    currency: str
    total_balance: Decimal
    granted_balance: Decimal
    topped_up_balance: Decimal


class Balance(BaseModel, frozen=True, extra="ignore"):
    """The account: whether it can serve calls, and its balance."""

    is_available: bool
    balance_infos: tuple[BalanceInfo, ...]


async def account_balance(settings: Settings) -> Balance:
    """The balance of the configured DeepSeek account; raises a `ModelError` with the remedy."""
    choice = choose_provider(settings)
    if not choice.provider.reports_balance or choice.tiers["flash"].api_key is None:
        raise InputError("Only DeepSeek reports its balance; set DEEPSEEK_API_KEY (and LLM_PROVIDER=deepseek).")
    try:
        return Balance.model_validate(await fetched(choice.tiers["flash"], "/user/balance", seconds=_SECONDS))
    except ValidationError:
        raise RefusedError(
            f"The reply of {choice.base_url} is not a balance; check that it is DeepSeek's address."
        ) from None
