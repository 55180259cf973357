"""The cost of an overview, estimated before the first call."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from ..llm.client import LanguageModel, utc_now
from ..llm.pricing import price, priced_model
from ..llm.transport import Message, Usage
from ..prompts.tokens import estimate_tokens
from ..wording import FREE, counted


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Calls, prompt tokens (estimated, rarely too low) and the maximum cost in USD, with every reply at its limit.

    `usd` is `None` if no price is known; `free` if the model runs on this machine.
    """

    calls: int
    prompt_tokens: int
    usd: Decimal | None
    free: bool

    def __str__(self) -> str:
        """The estimate in words."""
        cost = FREE if self.free else "cost unknown" if self.usd is None else f"at most {self.usd:.4f} USD"
        return f"{counted(self.calls, 'call')}, about {self.prompt_tokens:,} prompt tokens, {cost}"


def estimate(model: LanguageModel, stage: str, prompts: Iterable[tuple[Message, ...]], *, further: int = 0) -> Estimate:
    """The estimate for these prompts of a stage, plus `further` calls that read the replies to all of them."""
    sizes = [sum(estimate_tokens(message.content) for message in prompt) for prompt in prompts]
    served, endpoint = model.serving(stage)
    calls = len(sizes) + further
    completion = calls * served.max_tokens
    tokens = sum(sizes) + further * len(sizes) * served.max_tokens
    at = utc_now()
    name, prices = priced_model(model.settings, endpoint, at=at)
    cost = price(Usage(prompt=tokens, completion=completion), model=name, prices=prices, at=at)
    return Estimate(
        calls=calls, prompt_tokens=tokens, usd=None if cost is None else cost.usd, free=endpoint.is_embedded
    )
