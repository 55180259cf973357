"""What one visitor may spend, as a share of what the whole demo may."""

from dataclasses import dataclass
from decimal import Decimal

from ..llm.budget import Budget


@dataclass(kw_only=True)
class VisitorBudget(Budget):
    """A visitor's own limit within the limit of the `whole`; a call is reserved in both."""

    whole: Budget

    async def acquire(self, highest_usd: Decimal | None, *, model: str, deadline: float | None = None) -> Decimal:
        """See `Budget`. Raises `CostLimitError` where either limit could be passed, and `DeadlineError`."""
        own = await super().acquire(highest_usd, model=model, deadline=deadline)
        try:
            await self.whole.acquire(highest_usd, model=model, deadline=deadline)
        except BaseException:
            super().settle(own, Decimal(0))
            raise
        return highest_usd if highest_usd is not None else own

    def settle(self, reserved_usd: Decimal, paid_usd: Decimal | None, *, recorded: bool = True) -> None:
        """See `Budget`."""
        super().settle(reserved_usd, paid_usd, recorded=recorded)
        self.whole.settle(reserved_usd, paid_usd, recorded=recorded)
