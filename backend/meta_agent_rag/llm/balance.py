"""DeepSeek's balance API (GET /user/balance), and the comparison of the ledger with the account."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ValidationError

from ..errors import InputError, RefusedError
from ..settings import Settings
from .connections import fetched
from .ledger import LedgerRow
from .providers import choose_provider

_SECONDS = 20.0
_PROVIDER = "deepseek"
_READING = "balance.json"


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
    if not choice.provider.reports_balance or choice.api_key is None:
        raise InputError("Only DeepSeek reports its balance; set DEEPSEEK_API_KEY (and LLM_PROVIDER=deepseek).")
    try:
        return Balance.model_validate(await fetched(choice.tiers["flash"], "/user/balance", seconds=_SECONDS))
    except ValidationError:
        raise RefusedError(
            f"The reply of {choice.base_url} is not a balance; check that it is DeepSeek's address."
        ) from None


class BalanceReading(BaseModel, frozen=True, extra="ignore"):
    """The balance of the account at a time, in USD."""

    at: datetime
    usd: Decimal

    @classmethod
    def of(cls, balance: Balance, at: datetime) -> "BalanceReading":
        """The part in USD, the ledger's currency; raises `InputError` if there is none."""
        found = [info.total_balance for info in balance.balance_infos if info.currency == "USD"]
        if not found:
            held = ", ".join(info.currency for info in balance.balance_infos) or "nothing"
            raise InputError(f"The ledger is in USD, but the account holds {held}; the two cannot be compared.")
        return cls(at=at, usd=found[0])


def keep_reading(reading: BalanceReading, folder: Path) -> None:
    """Store a reading for a later `kept_reading`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _READING).write_text(reading.model_dump_json(), encoding="utf-8")


def kept_reading(folder: Path) -> BalanceReading:
    """The last stored reading; raises `InputError` if there is none."""
    try:
        return BalanceReading.model_validate_json((folder / _READING).read_bytes())
    except (OSError, ValidationError):
        raise InputError("No balance is stored to compare with; run `marag prices reconcile --start` first.") from None


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """The decrease of an account between two readings, and the payments in the ledger meanwhile, in USD.

    `unknown` counts calls with an unknown bill, which are not included in the sum.
    """

    before: BalanceReading
    after: BalanceReading
    calls: int
    paid_usd: Decimal
    unknown: int

    @property
    def lost_usd(self) -> Decimal:
        """The decrease of the account; negative after a top-up."""
        return self.before.usd - self.after.usd

    @property
    def difference_usd(self) -> Decimal:
        """The decrease that the ledger does not explain."""
        return self.lost_usd - self.paid_usd


def reconciled(before: BalanceReading, after: BalanceReading, rows: Iterable[LedgerRow]) -> Reconciliation:
    """Compare the calls that DeepSeek served between two readings with the difference of these."""
    made = [row for row in rows if row.provider == _PROVIDER and not row.cached and before.at <= row.at <= after.at]
    return Reconciliation(
        before=before,
        after=after,
        calls=len(made),
        paid_usd=sum((row.paid_usd for row in made if row.paid_usd is not None), Decimal(0)),
        unknown=sum(row.paid_usd is None for row in made),
    )
