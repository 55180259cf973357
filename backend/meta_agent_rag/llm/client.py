"""`ainvoke`: the only door to any model.

It picks the tier for a stage, looks in the response cache, reserves budget, calls, parses, re-asks a
malformed reply once, and writes a ledger row for whatever happened.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Protocol, TypeVar, overload

from pydantic import BaseModel

from ..errors import DeadlineError, LostConnectionError, MetaRagError, StructuredOutputError, TransientError
from ..setting_types import Tier
from ..settings import Settings
from .budget import Budget
from .cache import ResponseCache, request_key
from .exchange import Message, Reply, Request, Sampling, Transport
from .ledger import Ledger, LedgerRow, usage_fields
from .pacing import PASSED, KeyLock, Tries, alone, holding, in_time
from .pricing import most_it_costs, price, priced_model
from .providers import EMBEDDED, Choice, Stage, check_stage_tiers, stage
from .spans import completed
from .structured import MalformedReplyError, asked_again, parse_reply, without_thinking

Parsed = TypeVar("Parsed", bound=BaseModel)
_CUT = "length"
_PLAIN = Sampling()
_DRAWS_A_RUN = 1000
_TASK_AND_REPLY_TOKENS = 1800


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


class Tape(Protocol):
    """Keeps every call, or plays an earlier run's back instead of the model."""

    def play(self, row: LedgerRow, request: Request) -> tuple[LedgerRow, Reply | Exception] | None:
        """The recorded row of a call, and its reply or what was raised; `None` where nothing is played."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """One call that was made, or served by the cache."""


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """A provider with its cache, budget and ledger; `session` opens the door for one question.

    `draw` numbers repetitions of a whole run, so that the cache does not answer one with another's replies.
    """

    settings: Settings
    choice: Choice
    transport: Transport
    ledger: Ledger = field(default_factory=Ledger)
    budget: Budget = field(default_factory=Budget)
    cache: ResponseCache | None = None
    clock: Callable[[], datetime] = utc_now
    tape: Tape | None = None
    draw: int = 0
    _gates: dict[Tier, asyncio.Semaphore] = field(default_factory=dict)
    _under_way: dict[str, KeyLock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_stage_tiers(self.settings)

    def session(self, question_id: str = "", *, method: str = "", deadline: float | None = None) -> "ModelSession":
        """The door for one question. `deadline` is a `time.monotonic` moment that no call may pass."""
        return ModelSession(owner=self, question_id=question_id, method=method, deadline=deadline)

    async def aclose(self) -> None:
        """Release connections, processes and files."""
        await self.transport.aclose()
        self.ledger.close()
        if self.cache is not None:
            self.cache.close()
        self.budget.close()

    def evidence_tokens(self) -> int:
        """Tokens that evidence may take in a prompt: the setting, or what the model's window leaves."""
        provider = self.choice.provider
        window = self.settings.embedded_context_tokens if provider.name == EMBEDDED else provider.context
        return max(min(self.settings.evidence_tokens, window - _TASK_AND_REPLY_TOKENS), 256)

    def thinks(self, tier: Tier) -> bool:
        """Does a tier reason before it replies?"""
        return self.settings.flash_thinking if tier == "flash" else self.settings.pro_thinking

    def gives_logprobs(self, stage_name: str) -> bool:
        """Does what serves a stage report its tokens' log-probabilities?"""
        return self.choice.provider.logprobs and not self.thinks(stage(stage_name, self.settings).tier)

    def gate(self, tier: Tier) -> asyncio.Semaphore:
        """Bounds the calls in flight of a tier to what the provider allows."""
        return self._gates.setdefault(tier, asyncio.Semaphore(self.choice.provider.concurrency[tier]))


@dataclass(frozen=True, kw_only=True)
class _Call:
    """One call in progress: what its ledger row needs to know."""

    request: Request
    key: str
    row: LedgerRow


@dataclass(frozen=True, kw_only=True)
class ModelSession:
    """Calls on behalf of one question; `rows` are theirs alone."""

    owner: LanguageModel
    question_id: str
    method: str
    deadline: float | None
    rows: list[LedgerRow] = field(default_factory=list)

    @overload
    async def ainvoke(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: None = None,
        *,
        round_: int = 0,
        sampling: Sampling = _PLAIN,
    ) -> str: ...

    @overload
    async def ainvoke(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: type[Parsed],
        *,
        round_: int = 0,
        sampling: Sampling = _PLAIN,
    ) -> Parsed: ...

    async def ainvoke(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: type[Parsed] | None = None,
        *,
        round_: int = 0,
        sampling: Sampling = _PLAIN,
    ) -> Parsed | str:
        """Ask the tier that serves a stage; with a schema, the reply is a validated value of it.

        Raises a `ModelError` (`StructuredOutputError` after one re-ask) or a `BudgetError`.
        """
        if schema is None:
            return without_thinking((await self.areply(stage_name, messages, round_=round_, sampling=sampling)).text)
        return (await self.aparse(stage_name, messages, schema, round_=round_, sampling=sampling))[0]

    async def aparse(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: type[Parsed],
        *,
        round_: int = 0,
        sampling: Sampling = _PLAIN,
    ) -> tuple[Parsed, Reply]:
        """As `ainvoke`, with the reply that the value was read from, for its tokens' log-probabilities."""
        served_by = stage(stage_name, self.owner.settings)
        wanted = _json_schema(schema)
        first = self._prepare(served_by, tuple(messages), wanted, round_=round_, attempt=0, sampling=sampling)
        reply = await self._call(first)
        try:
            return parse_reply(reply.text, schema, cut=reply.finish_reason == _CUT), reply
        except MalformedReplyError as fault:
            again = (*messages, *asked_again(reply, fault, self.owner.settings.prompts_dir))
        second = self._prepare(served_by, again, wanted, round_=round_, attempt=1, sampling=sampling)
        reply = await self._call(second)
        try:
            return parse_reply(reply.text, schema, cut=reply.finish_reason == _CUT), reply
        except MalformedReplyError as fault:
            if self.owner.cache is not None:  # kept, they would fail the question for ever
                self.owner.cache.drop(first.key)
                self.owner.cache.drop(second.key)
            raise StructuredOutputError(
                f"The model {self.owner.choice.models[served_by.tier]!r} did not send the requested JSON in stage "
                f"{stage_name!r}, even when asked again ({fault}); use a model that follows JSON mode."
            ) from None

    async def areply(
        self, stage_name: str, messages: Sequence[Message], *, round_: int = 0, sampling: Sampling = _PLAIN
    ) -> Reply:
        """Ask for free text; the reply as it came, with the tokens' log-probabilities where they were asked for."""
        served_by = stage(stage_name, self.owner.settings)
        call = self._prepare(served_by, tuple(messages), None, round_=round_, attempt=0, sampling=sampling)
        return await self._call(call)

    async def _call(self, call: _Call) -> Reply:
        owner = self.owner
        if owner.tape is not None and (played := self._played(owner.tape, call)) is not None:
            return played
        # where replies are cached, equal calls go one at a time
        turn = nullcontext() if owner.cache is None else alone(owner._under_way, call.key, self.deadline)
        async with turn:
            kept = owner.cache.get(call.key) if owner.cache is not None else None
            if kept is not None:
                row = replace(call.row, at=kept.at or call.row.at)
                self._record(replace(call, row=row), kept.reply, cached=True)
                return kept.reply
            async with holding(owner.gate(call.row.tier), self.deadline):
                return await self._served(call)

    async def _served(self, call: _Call) -> Reply:
        """Serve a call, and make it again where it was lost, late or not to be understood; each try has its row."""
        tries = self._tries()
        while True:
            try:
                return await self._serve(call)
            except (LostConnectionError, TransientError) as fault:
                if not tries.another(fault):
                    raise
                seconds = tries.pause(fault)
            await in_time(asyncio.sleep(seconds), self.deadline)

    def _played(self, tape: Tape, call: _Call) -> Reply | None:
        """What the tape holds of a call, try by try as `_served` made them; `None` where nothing is played."""
        tries = self._tries()
        while True:
            if (played := tape.play(call.row, call.request)) is None:
                return None
            row, came = played
            self._add(row, call.request, came)
            if isinstance(came, Reply):
                return came
            if not (isinstance(came, LostConnectionError | TransientError) and tries.another(came)):
                raise came

    def _tries(self) -> Tries:
        return Tries(most=self.owner.settings.llm_max_retries)

    def _prepare(
        self,
        served_by: Stage,
        messages: tuple[Message, ...],
        wanted: Mapping[str, Any] | None,
        *,
        round_: int,
        attempt: int,
        sampling: Sampling,
    ) -> _Call:
        settings, choice, tier = self.owner.settings, self.owner.choice, served_by.tier
        thinking = self.owner.thinks(tier)
        temperature = settings.writer_temperature if sampling.temperature is None else sampling.temperature
        request = Request(
            stage=served_by.name,
            model=choice.models[tier],
            messages=messages,
            max_tokens=served_by.max_tokens,
            temperature=None if thinking else temperature,
            json_schema=wanted,
            extra_body=choice.provider.thinking_on if thinking else choice.provider.thinking_off,
            draw=self.owner.draw * _DRAWS_A_RUN + sampling.draw,
            logprobs=sampling.logprobs,
            stop=sampling.stop,
        )
        key = request_key(self.owner.transport.endpoint, request)
        row = LedgerRow(
            at=self.owner.clock(),
            stage=served_by.name,
            tier=tier,
            provider=choice.provider.name,
            model=request.model,
            request=key,
            question_id=self.question_id,
            method=self.method,
            round=round_,
            attempt=attempt,
        )
        return _Call(request=request, key=key, row=row)

    async def _serve(self, call: _Call) -> Reply:
        owner, call = self.owner, self._now(call)
        reserved = await owner.budget.acquire(self._highest(call), model=call.request.model, deadline=self.deadline)
        try:
            seconds = self._seconds_left()
        except DeadlineError:
            owner.budget.settle(reserved, Decimal(0))
            raise
        call = self._now(call)
        started = time.perf_counter()
        outcome: Reply | None = None
        fault: BaseException | None = None
        error: str | None = "cancelled"
        unbilled = False
        try:
            outcome = await completed(
                owner.transport, call.row, call.request, seconds=seconds, content=owner.settings.telemetry_content
            )
            error = None
            if owner.cache is not None:
                # before the ledger's row: a kill between the two must not have the call paid again
                owner.cache.put(call.key, outcome, call.row.at)
        except TimeoutError:
            error, fault = "timeout", self._late(seconds)
            raise fault from None
        except MetaRagError as raised:
            error, fault = type(raised).__name__, raised
            unbilled = outcome is None and not isinstance(raised, LostConnectionError | TransientError)
            raise
        except Exception as raised:
            error, fault = type(raised).__name__, raised
            raise
        finally:
            # where the bill is not known, all that it could have cost counts as paid, in a resumed run too
            held = None if unbilled or not owner.budget.holds else self._highest(call, outcome)
            row = replace(call.row, latency_s=round(time.perf_counter() - started, 4), error=error, paid_usd=held)
            recorded = False
            try:
                row = self._record(replace(call, row=row), outcome, fault=fault)
                recorded = True
            finally:  # a ledger that cannot be written must not leave others waiting for this reservation
                owner.budget.settle(reserved, Decimal(0) if unbilled else row.paid_usd, recorded=recorded)
        return outcome

    def _now(self, call: _Call) -> _Call:
        """A call is priced as it goes out, not as it was prepared."""
        return replace(call, row=replace(call.row, at=self.owner.clock()))

    def _record(
        self, call: _Call, reply: Reply | None, *, cached: bool = False, fault: BaseException | None = None
    ) -> LedgerRow:
        row = call.row
        if reply is not None:
            cost = self._cost(reply, call)
            row = replace(
                row,
                cached=cached,
                finish_reason=reply.finish_reason,
                cost_usd=cost.usd if cost else None,
                paid_usd=Decimal(0) if cached else cost.usd if cost else row.paid_usd,
                peak=cost.peak if cost else False,
                **usage_fields(reply.usage),
            )
        self._add(row, call.request, reply or fault or asyncio.CancelledError())
        return row

    def _add(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        self.rows.append(row)
        self.owner.ledger.add(row)
        if self.owner.tape is not None:
            self.owner.tape.keep(row, request, outcome)

    def _cost(self, reply: Reply, call: _Call) -> Any:
        if reply.usage is None:
            return None
        model, prices = self._priced(call.row.tier)
        return price(reply.usage, model=model, prices=prices, at=call.row.at)

    def _highest(self, call: _Call, reply: Reply | None = None) -> Decimal | None:
        """The most that a call may come to; a reply that is seen bounds it where no reasoning can be hidden."""
        if not self.owner.budget.holds:
            return None
        model, prices = self._priced(call.row.tier)
        visible = self.owner.choice.provider.thinking_off and not self.owner.thinks(call.row.tier)
        seen = reply.text if reply is not None and visible else None
        return most_it_costs(call.request, seen, model=model, prices=prices, at=call.row.at)

    def _priced(self, tier: Tier) -> tuple[str, str | None]:
        return priced_model(self.owner.settings, self.owner.choice, tier, at=self.owner.clock())

    def _seconds_left(self) -> float:
        limit = self.owner.settings.llm_timeout_seconds or float(self.owner.choice.provider.seconds)
        if self.deadline is None:
            return limit
        if (left := self.deadline - time.monotonic()) <= 0:
            raise DeadlineError(PASSED)
        return min(limit, left)

    def _late(self, seconds: float) -> MetaRagError:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return DeadlineError("The deadline passed during a model call; ask a simpler question or allow more time.")
        return TransientError(f"The model did not answer within {seconds:g} s; raise LLM_TIMEOUT_SECONDS or try again.")


@cache
def _json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    return schema.model_json_schema()
