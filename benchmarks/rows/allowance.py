"""What a row may spend on a question: as much as another row spent on it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from meta_agent_rag.errors import MetaRagError, UnpricedModelError
from meta_agent_rag.llm.ledger import LedgerRow, total

DOLLARS, TOKENS = "dollars", "tokens"
KINDS = (DOLLARS, TOKENS)
"""By price, or by prompt and completion tokens, cached or not."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """An amount of dollars or tokens."""

    kind: str
    amount: float

    def spent(self, calls: Sequence[LedgerRow]) -> float:
        """What calls have spent of it; raises `UnpricedModelError` if dollars are counted and a price is unknown."""
        sums = total(calls)
        if self.kind == TOKENS:
            return float(sums.prompt_tokens + sums.completion_tokens)
        return _dollars(sums.cost_usd)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What rows of a run spent, by question id and name, for rows that wait for it."""

    _rows: dict[tuple[str, str], "asyncio.Future[Mapping[str, Any]]"] = field(default_factory=dict)

    def note(self, row: Mapping[str, Any]) -> None:
        """A row is complete, answered or failed."""
        found = self._row(row["id"], row["method"])
        if not found.done():
            found.set_result({name: row[name] for name in ("cost_usd", "tokens")})

    def end(self, id_: str, name: str, error: MetaRagError) -> None:
        """The row will not come: every waiter fails for the same reason."""
        found = self._row(id_, name)
        if not found.done():
            found.set_exception(error)
            found.exception()  # retrieved, in case nobody waits

    async def allowance(self, id_: str, name: str, kind: str) -> Allowance:
        """As much as that row spent, once it is complete."""
        row = await self._row(id_, name)
        if kind == TOKENS:
            return Allowance(kind=kind, amount=float(row["tokens"]["prompt"] + row["tokens"]["completion"]))
        return Allowance(kind=kind, amount=_dollars(row["cost_usd"]))

    def _row(self, id_: str, name: str) -> "asyncio.Future[Mapping[str, Any]]":
        if (id_, name) not in self._rows:
            self._rows[id_, name] = asyncio.get_running_loop().create_future()
        return self._rows[id_, name]


def _dollars(amount: Any) -> float:
    if amount is None:
        raise UnpricedModelError("The model has no known price; set PRICE_AS, or make the rows equal in tokens.")
    return float(amount)
