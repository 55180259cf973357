"""`ainvoke`: the only way to call a model.

It chooses the tier for a stage, looks in the response cache, reserves budget, calls, parses, re-asks a
malformed reply once, and writes a ledger row in every case.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args
from weakref import WeakValueDictionary

from pydantic import BaseModel

from ..errors import (
    BusyError,
    DeadlineError,
    LostConnectionError,
    MetaRagError,
    ModelError,
    StructuredOutputError,
    TransientError,
    UnreachableError,
    WithheldError,
)
from ..settings import Settings, Tier
from .budget import PASSED, Budget, holding, in_time
from .cache import ResponseCache, request_key
from .chat import Connection
from .connections import Connections
from .ledger import CANCELLED, Ledger, LedgerRow
from .messages import Message, Reply, Request, Sampling
from .pricing import max_cost, price
from .providers import Choice, Endpoint
from .stages import ANSWER, Stage, check_stages, endpoints_in_use, evidence_room, serving, stage
from .structured import MalformedReplyError, asked_again, json_schema, parse_reply, without_thinking

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

Parsed = TypeVar("Parsed", bound=BaseModel)
Result = TypeVar("Result")
PLAIN = Sampling()
_PERHAPS_BILLED = LostConnectionError | TransientError | DeadlineError
_LATE = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_WITHHELD = {
    "refusal": "refused to answer; rephrase the question, or use another model",
    "content_filter": "was stopped by its provider's content filter; rephrase the question, or use another model",
    "reasoning": "reasoned and sent no reply; switch its thinking off, or use another model",
    "nothing": "sent an empty reply; try again, or use another model",
}


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


class Tape(Protocol):
    """Records every call."""

    def keep(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        """Record a call that was made, or served by the cache."""


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """The endpoints of all stages, with cache, budget and ledger; `session` gives access for one question.

    With `unusable`, malformed replies stay cached, and their keys are listed there by (question id, method).
    """

    settings: Settings
    choice: Choice
    connections: Connections
    ledger: Ledger = field(default_factory=Ledger)
    budget: Budget = field(default_factory=Budget)
    cache: ResponseCache | None = None
    clock: Callable[[], datetime] = utc_now
    tape: Tape | None = None
    unusable: dict[tuple[str, str], list[str]] | None = None
    _gates: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    _under_way: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    # of these settings alone: a copy with others, made by `replace`, must not have them
    _served: dict[str, tuple[Stage, Endpoint]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_stages(self.settings)

    def session(
        self,
        question_id: str = "",
        *,
        method: str = "",
        deadline: float | None = None,
    ) -> "ModelSession":
        """Access for one question; no call exceeds `deadline` (`time.monotonic`)."""
        return ModelSession(owner=self, question_id=question_id, method=method, deadline=deadline)

    async def warm(self) -> None:
        """Open the chat models of all endpoints, since importing their libraries takes seconds. Makes no call."""
        for endpoint in endpoints_in_use(self.settings, ANSWER).values():
            await (await self.connections.to(endpoint)).chat()

    async def aclose(self) -> None:
        """Release connections, processes and files."""
        await self.connections.aclose()
        self.ledger.close()
        if self.cache is not None:
            self.cache.close()
        self.budget.close()

    def serving(self, stage_name: str) -> tuple[Stage, Endpoint]:
        """A stage and the endpoint that serves it; raises `UnknownNameError`."""
        if stage_name not in self._served:
            found = stage(stage_name, self.settings)
            self._served[stage_name] = found, serving(found, self.settings, self.choice)
        return self._served[stage_name]

    def evidence_tokens(self) -> int:
        """Tokens available for evidence in a prompt: the setting, or the space left in the smallest window."""
        return self._room

    @cached_property
    def _room(self) -> int:
        return evidence_room(self.settings)

    def gives_logprobs(self, stage_name: str) -> bool:
        """Whether the endpoint of a stage reports its tokens' log-probabilities."""
        _, endpoint = self.serving(stage_name)
        return endpoint.provider.logprobs and not endpoint.thinking

    def gate(self, endpoint: Endpoint) -> asyncio.Semaphore:
        """Limits concurrent calls to an endpoint to the allowed number."""
        return self._gates.setdefault(endpoint.name, asyncio.Semaphore(endpoint.concurrency))


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request with its endpoint and its ledger row."""

    request: Request
    row: LedgerRow
    endpoint: Endpoint
    connection: Connection

    def now(self, at: datetime, **fields: Any) -> "Call":
        """The call with its row dated `at`, and with other fields of the row."""
        return replace(self, row=replace(self.row, at=at, **fields))


@dataclass(frozen=True, kw_only=True)
class ModelSession:
    """Calls for one question; `rows` contains only these calls."""

    owner: LanguageModel
    question_id: str
    method: str
    deadline: float | None
    rows: list[LedgerRow] = field(default_factory=list)

    async def ainvoke(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: type[Parsed],
        *,
        round_: int = 0,
        sampling: Sampling = PLAIN,
    ) -> Parsed:
        """Call the model that serves a stage; the reply is a validated instance of the schema.

        Raises a `ModelError` (`StructuredOutputError` after one re-ask) or a `BudgetError`.
        """
        return (await self.aparse(stage_name, messages, schema, round_=round_, sampling=sampling))[0]

    async def aparse(
        self,
        stage_name: str,
        messages: Sequence[Message],
        schema: type[Parsed],
        *,
        round_: int = 0,
        sampling: Sampling = PLAIN,
    ) -> tuple[Parsed, Reply]:
        """Like `ainvoke`, but also returns the reply that the value was read from, e.g. for its log-probabilities."""
        asked, made, why = tuple(messages), list[Call](), ""
        for attempt in (0, 1):
            call = await self._prepare(stage_name, asked, json_schema(schema), round_, sampling, attempt=attempt)
            made.append(call)
            reply = await self._call(call)
            self._require(reply, made)
            try:
                return parse_reply(reply.text, schema, cut=reply.is_cut), reply
            except MalformedReplyError as fault:
                asked = (*messages, *asked_again(reply, fault, self.owner.settings.prompts_dir))
                why = self._cut(reply, call) if reply.is_cut else f"{fault}; use a model that follows JSON mode"
        self._require(reply, made, text=True)
        self._forget(made)
        raise StructuredOutputError(
            f"The model {call.request.model!r} did not send the requested JSON in stage {stage_name!r}, even when "
            f"asked again: {why}."
        )

    async def areply(
        self, stage_name: str, messages: Sequence[Message], *, round_: int = 0, sampling: Sampling = PLAIN
    ) -> Reply:
        """Request free text; the reply is without the reasoning that some models print before it.

        Raises a `WithheldError` if there is no text, and a `StructuredOutputError` if the limit left no room for it.
        """
        call = await self._prepare(stage_name, tuple(messages), None, round_, sampling)
        reply = await self._call(call)
        text = without_thinking(reply.text)
        # a reply with `stop` may end before its first word
        self._require(reply, [call], text=not sampling.stop)
        if reply.is_cut and not text:
            self._forget([call])
            raise StructuredOutputError(f"The model {call.request.model!r} sent no text: {self._cut(reply, call)}.")
        return replace(reply, text=text)

    def _cut(self, reply: Reply, call: Call) -> str:
        """Describe where a reply was cut, and which setting raises the limit."""
        settings, endpoint, limit = self.owner.settings, call.endpoint, call.request.max_tokens
        hidden = reply.usage.reasoning if reply.usage is not None else 0
        spent = f", {hidden} of them for hidden reasoning" if hidden else ""
        if endpoint.thinking:
            remedy = f"raise THINKING_TOKENS (now {settings.thinking_tokens})"
        elif not (hidden or "<think>" in reply.text or not reply.text):
            remedy = f"raise it with STAGE_TOKENS={call.request.stage}={2 * limit}"
        else:
            tier = endpoint.name in get_args(Tier)
            setting = f"{endpoint.name.upper()}_THINKING=true" if tier else "`thinking: true` in MODEL_ROLES"
            remedy = f"the model reasons before it replies: set {setting}"
        return f"the reply was cut at its limit of {limit} tokens{spent}; {remedy}"

    def _require(self, reply: Reply, calls: Sequence[Call], *, text: bool = False) -> None:
        """Raise a `WithheldError` for a reply that the model or its provider withholds, or without `text` if asked."""
        why: str | None = reply.withheld if reply.withheld in ("refusal", "content_filter") else None
        if why is None and text and not (reply.is_cut or without_thinking(reply.text)):
            why = "reasoning" if reply.text.strip() or reply.withheld else "nothing"
        if why is not None:
            self._forget(calls)
            request = calls[-1].request
            raise WithheldError(f"In stage {request.stage!r}, the model {request.model!r} {_WITHHELD[why]}.")

    def _forget(self, calls: Sequence[Call]) -> None:
        """Drop unusable replies from the cache; if kept, they would fail the question forever.

        A run drops them when the question is finished, so that one interrupted by a kill does not pay for them twice.
        """
        keys = [call.row.request for call in calls]
        if self.owner.unusable is not None:
            self.owner.unusable.setdefault((self.question_id, self.method), []).extend(keys)
        elif self.owner.cache is not None:
            self.owner.cache.drop(*keys)

    async def _prepare(
        self,
        stage_name: str,
        messages: tuple[Message, ...],
        wanted: Mapping[str, Any] | None,
        round_: int,
        sampling: Sampling,
        *,
        attempt: int = 0,
    ) -> Call:
        served, endpoint = self.owner.serving(stage_name)
        connection = await self.owner.connections.to(endpoint)
        provider, settings = endpoint.provider, self.owner.settings
        temperature = settings.writer_temperature if sampling.temperature is None else sampling.temperature
        request = Request(
            stage=served.name,
            model=endpoint.model,
            messages=messages,
            max_tokens=served.max_tokens + endpoint.thinking_room(settings),
            temperature=None if endpoint.thinking else temperature,
            json_schema=wanted,
            extra_body={**(provider.thinking_on if endpoint.thinking else provider.thinking_off), **endpoint.body},
            draw=sampling.draw,
            logprobs=sampling.logprobs,
            stop=sampling.stop,
        )
        row = LedgerRow(
            at=self.owner.clock(),
            stage=served.name,
            role=served.role,
            tier=served.tier,
            endpoint=endpoint.name,
            provider=endpoint.provider.name,
            model=request.model,
            request=request_key(connection.identity, request),
            question_id=self.question_id,
            method=self.method,
            round=round_,
            attempt=attempt,
        )
        return Call(request=request, row=row, endpoint=endpoint, connection=connection)

    async def _call(self, call: Call) -> Reply:
        """The reply of the cache or the server; with a cache, equal calls run one at a time."""
        owner, asked = self.owner, time.perf_counter()
        lock = owner._under_way.setdefault(call.row.request, asyncio.Lock())
        async with nullcontext() if owner.cache is None else holding(lock, self.deadline):
            kept = owner.cache.get(call.row.request) if owner.cache is not None else None
            if kept is not None:
                self._record(call.now(kept.at, cached=True), kept.reply)
                return kept.reply
            async with holding(owner.gate(call.endpoint), self.deadline):
                queued = round(time.perf_counter() - asked, 4)
                return await self._repeated(replace(call, row=replace(call.row, queued_s=queued)))

    async def _repeated(self, call: Call) -> Reply:
        """The reply of the server, which is asked again if it was busy, late (at most twice), or not reached.

        This is the only loop of retries: each attempt is reserved and has its own row.
        """
        most, failed = self.owner.settings.llm_max_retries, {True: 0, False: 0}
        while True:
            try:
                return await self._attempt(call)
            except (BusyError, UnreachableError, TransientError) as fault:
                late = isinstance(fault, TransientError)
                pause = 0.0 if late else min(_FIRST_PAUSE_S * 2.0 ** failed[late], _LONGEST_PAUSE_S)
                pause *= 1 - 0.25 * random.random()
                if isinstance(fault, BusyError) and fault.retry_after is not None:
                    pause = fault.retry_after
                failed[late] += 1
                if failed[late] > (min(_LATE, most) if late else most) or pause > self._seconds_left(call.endpoint):
                    raise
            await in_time(asyncio.sleep(pause), self.deadline)

    async def _attempt(self, call: Call) -> Reply:
        owner = self.owner
        # priced when sent, not when prepared; the embedded model costs nothing
        most = Decimal(0) if call.endpoint.is_embedded else self._held(call.now(owner.clock()))
        reserved = await owner.budget.acquire(most, model=call.request.model, deadline=self.deadline)
        try:
            seconds = self._seconds_left(call.endpoint)
        except DeadlineError:
            owner.budget.settle(reserved, Decimal(0))
            raise
        call, started = call.now(owner.clock()), time.perf_counter()
        outcome: Reply | None = None
        fault: BaseException = asyncio.CancelledError()
        error: str | None = CANCELLED
        try:
            async with asyncio.timeout(seconds):
                outcome = await call.connection.complete(call.request, _traced_as(call.row))
            error = None
            if owner.cache is not None:
                # before the ledger row: a kill between the two must not cause the call to be paid twice
                owner.cache.put(call.row.request, outcome, call.row.at)
        except TimeoutError:
            error, fault = "timeout", self._late(seconds)
            raise fault from None
        except Exception as raised:
            error, fault = type(raised).__name__, raised
            raise
        finally:
            perhaps_billed = isinstance(fault, _PERHAPS_BILLED) or type(fault) is ModelError
            unbilled = outcome is None and isinstance(fault, MetaRagError) and not perhaps_billed
            held = None if unbilled or outcome is not None else self._held(call)
            spent = round(time.perf_counter() - started, 4)
            recorded = False
            try:
                row = self._record(call.now(call.row.at, latency_s=spent, error=error, paid_usd=held), outcome, fault)
                held, recorded = row.paid_usd, True
            finally:  # a failed ledger write must not leave others waiting for this reservation
                owner.budget.settle(reserved, Decimal(0) if unbilled else held, recorded=recorded)
        return outcome

    def _record(self, call: Call, reply: Reply | None, fault: BaseException | None = None) -> LedgerRow:
        row = call.row
        if reply is not None:
            used, model, prices = reply.usage, call.endpoint.model, call.endpoint.provider.prices
            cost = None if used is None else price(used, model=model, prices=prices, at=row.at)
            row = replace(
                row,
                finish_reason=reply.finish_reason,
                answered_by=reply.model,
                cost_usd=cost.usd if cost else None,
                paid_usd=Decimal(0) if row.cached else cost.usd if cost else self._held(call, reply),
                peak=cost.peak if cost else False,
                usage_known=used is not None,
                **(used.columns() if used is not None else {}),
            )
        self.rows.append(row)
        self.owner.ledger.add(row)
        if self.owner.tape is not None:
            self.owner.tape.keep(row, call.request, reply or fault or asyncio.CancelledError())
        return row

    def _held(self, call: Call, reply: Reply | None = None) -> Decimal | None:
        """The maximum cost, which counts as paid if the bill is unknown; a reply bounds it if none can be hidden."""
        if not self.owner.budget.holds:
            return None
        provider = call.endpoint.provider
        visible = provider.thinking_off and not call.endpoint.thinking
        seen = reply.text if reply is not None and visible else None
        return max_cost(call.request, seen, model=call.endpoint.model, prices=provider.prices, at=call.row.at)

    def _seconds_left(self, endpoint: Endpoint) -> float:
        limit = endpoint.seconds or self.owner.settings.llm_timeout_seconds or float(endpoint.provider.seconds)
        if self.deadline is None:
            return limit
        if (left := self.deadline - time.monotonic()) <= 0:
            raise DeadlineError(PASSED)
        return min(limit, left)

    def _late(self, seconds: float) -> MetaRagError:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return DeadlineError("The deadline passed during a model call; ask a simpler question or allow more time.")
        return TransientError(f"The model did not answer within {seconds:g} s; raise LLM_TIMEOUT_SECONDS or try again.")


def _traced_as(row: LedgerRow) -> "RunnableConfig":
    """A trace shows a call under the name of its stage, below the node that makes it."""
    about = ("stage", "role", "tier", "round", "attempt", "question_id", "method")
    return {
        "run_name": row.stage,
        "tags": [row.stage, row.tier],
        "metadata": {name: getattr(row, name) for name in about},
    }


async def traced(name: str, work: Callable[[], Awaitable[Result]], config: "RunnableConfig | None" = None) -> Result:
    """Do a piece of work as one run of a trace, below which the graph and every model call appear."""
    from langchain_core.runnables import RunnableLambda

    async def run(_: None) -> Result:
        return await work()

    done: Result = await RunnableLambda(run).with_config(run_name=name).ainvoke(None, config)
    return done
