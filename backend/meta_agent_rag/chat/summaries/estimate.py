"""The cost of an overview, estimated before the first call."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pydantic import BaseModel

from ...llm.call import new_request, unannounced_tokens
from ...llm.client import LanguageModel, utc_now
from ...llm.messages import Message, Reply, Request
from ...llm.pricing import max_cost, priced_model
from ...llm.structured import LONGEST_QUOTED_REPLY, MalformedReplyError, asked_again, json_schema
from ...prompts.tokens import estimate_tokens
from ...wording import FREE, counted

_LONGEST_FAULT = MalformedReplyError("x" * 500)
_LONGEST_REPLY = Reply(text="\U0001f600" * LONGEST_QUOTED_REPLY, usage=None)  # a character of four bytes


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Calls, prompt tokens (estimated, rarely too low) and the maximum cost in USD.

    The maximum assumes that every reply is requested twice, because the first is malformed, and uses its whole token
    limit; repeats after a lost connection or a timeout are not included. `usd` is `None` if no price is known; `free`
    if the model runs on this machine.
    """

    calls: int
    prompt_tokens: int
    usd: Decimal | None
    free: bool

    def __str__(self) -> str:
        """The estimate in words."""
        cost = FREE if self.free else "cost unknown" if self.usd is None else f"at most {self.usd:.4f} USD"
        return f"{counted(self.calls, 'call')}, about {self.prompt_tokens:,} prompt tokens, {cost}"

    def __add__(self, other: "Estimate") -> "Estimate":
        """The estimate for the calls of both."""
        return Estimate(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            free=self.free and other.free,
        )


def estimate(
    model: LanguageModel, stage: str, prompts: Iterable[tuple[Message, ...]], schema: type[BaseModel]
) -> Estimate:
    """The estimate for calls with these prompts of a stage, each for a reply of this schema."""
    settings, wanted, at = model.settings, json_schema(schema), utc_now()
    served, endpoint = model.serving(stage)
    name, prices = priced_model(settings, endpoint, at=at)
    fault = asked_again(_LONGEST_REPLY, _LONGEST_FAULT, settings.prompts_dir)
    more = 0 if endpoint.thinking else unannounced_tokens(endpoint, settings)
    requests: list[Request] = []
    tokens = 0
    for prompt in prompts:
        tokens += sum(estimate_tokens(message.content) for message in prompt)
        requests.append(new_request(served, endpoint, settings, prompt, wanted))
        requests.append(new_request(served, endpoint, settings, (*prompt, *fault), wanted, more=more))
    costs = [max_cost(request, model=name, prices=prices, at=at) for request in requests]
    known = [cost for cost in costs if cost is not None]
    return Estimate(
        calls=len(requests) // 2,
        prompt_tokens=tokens,
        usd=sum(known, Decimal(0)) if len(known) == len(costs) else None,
        free=endpoint.is_embedded,
    )
