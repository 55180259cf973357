"""`ainvoke`: the only way to call a model.

It chooses the tier for a stage, looks in the response cache, reserves budget, calls, parses, re-asks a
malformed reply once, and writes a ledger row in every case.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
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
from .ledger import CANCELLED, Ledger, LedgerRow, usage_fields
from .messages import Message, OnText, Reply, Request, Sampling
from .pricing import max_cost, price, priced_model
from .providers import Choice, Endpoint
from .stages import ANSWER, Stage, check_stages, endpoints_in_use, evidence_room, serving, stage
from .structured import MalformedReplyError, asked_again, json_schema, parse_reply, without_thinking

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_LOG = logging.getLogger(__name__)
Parsed = TypeVar("Parsed", bound=BaseModel)
Result = TypeVar("Result")
PLAIN = Sampling()
_PERHAPS_BILLED = LostConnectionError | TransientError
_REPEATED = (BusyError, UnreachableError, TransientError)
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
    _warned: set[tuple[str, str]] = field(default_factory=set)
    # of these settings alone: a copy with others, made by `replace`, must not have them
    _served: dict[str, tuple[Stage, Endpoint]] = field(default_factory=dict, init=False)
    _room: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        check_stages(self.settings)

    def session(
        self,
        question_id: str = "",
        *,
        method: str = "",
        deadline: float | None = None,
        on_text: OnText | None = None,
    ) -> "ModelSession":
        """Access for one question; no call exceeds `deadline` (`time.monotonic`), `on_text` gets growing replies."""
        return ModelSession(owner=self, question_id=question_id, method=method, deadline=deadline, on_text=on_text)

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
        if not self._room:
            self._room.append(evidence_room(self.settings))
        return self._room[0]

    def gives_logprobs(self, stage_name: str) -> bool:
        """Whether the endpoint of a stage reports its tokens' log-probabilities."""
        _, endpoint = self.serving(stage_name)
        return endpoint.provider.logprobs and not endpoint.thinking

    def gate(self, endpoint: Endpoint) -> asyncio.Semaphore:
        """Limits concurrent calls to an endpoint to the allowed number."""
        return self._gates.setdefault(endpoint.name, asyncio.Semaphore(endpoint.concurrency))


def new_request(
    stage: Stage,
    endpoint: Endpoint,
    settings: Settings,
    messages: tuple[Message, ...],
    wanted: Mapping[str, Any] | None,
    *,
    sampling: Sampling = PLAIN,
    more: int = 0,
) -> Request:
    """The request of a stage to its endpoint; `more` raises the token limit."""
    provider = endpoint.provider
    temperature = settings.writer_temperature if sampling.temperature is None else sampling.temperature
    return Request(
        stage=stage.name,
        model=endpoint.model,
        messages=messages,
        max_tokens=stage.max_tokens + endpoint.thinking_room(settings) + more,
        temperature=None if endpoint.thinking else temperature,
        json_schema=wanted,
        extra_body={**(provider.thinking_on if endpoint.thinking else provider.thinking_off), **endpoint.body},
        draw=sampling.draw,
        logprobs=sampling.logprobs,
        stop=sampling.stop,
    )


def unannounced_tokens(endpoint: Endpoint, settings: Settings) -> int:
    """The token allowance for hidden reasoning of a model that is not known to think."""
    return replace(endpoint, thinking=True).thinking_room(settings)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A request with its endpoint and its ledger row."""

    request: Request
    row: LedgerRow
    endpoint: Endpoint
    connection: Connection
    settings: Settings

    def highest(self, reply: Reply | None = None) -> Decimal | None:
        """The maximum cost; a known reply bounds it if no reasoning can be hidden."""
        model, prices = priced_model(self.settings, self.endpoint, at=self.row.at)
        visible = self.endpoint.provider.thinking_off and not self.endpoint.thinking
        seen = reply.text if reply is not None and visible else None
        return max_cost(self.request, seen, model=model, prices=prices, at=self.row.at)

    def reasoned_through(self, reply: Reply) -> bool:
        """Whether unannounced hidden reasoning cut the reply, so that a higher limit would help."""
        return reply.is_cut and not self.endpoint.thinking and reply.reasoned

    def cut_words(self, reply: Reply) -> str:
        """Describe where a reply was cut, and which setting raises the limit."""
        hidden = reply.usage.reasoning if reply.usage is not None else 0
        spent = f", {hidden} of them for hidden reasoning" if hidden else ""
        if self.endpoint.thinking:
            remedy = f"raise THINKING_TOKENS (now {self.settings.thinking_tokens})"
        elif not reply.reasoned:
            remedy = f"raise it with STAGE_TOKENS={self.request.stage}={2 * self.request.max_tokens}"
        else:
            tier = self.endpoint.name in get_args(Tier)
            setting = f"{self.endpoint.name.upper()}_THINKING=true" if tier else "`thinking: true` in MODEL_ROLES"
            remedy = f"the model reasons before it replies: set {setting}"
        return f"the reply was cut at its limit of {self.request.max_tokens} tokens{spent}; {remedy}"


@dataclass(kw_only=True)
class Tries:
    """The attempts of one call: `most` after a busy server or a lost connection, two if it was late or unreadable."""

    most: int
    lost: int = 0
    late: int = 0

    def another(self, fault: ModelError) -> bool:
        """Count a failed attempt; true if another one is worthwhile."""
        if isinstance(fault, TransientError):
            self.late += 1
            return self.late <= min(_LATE, self.most)
        self.lost += 1
        return self.lost <= self.most

    def pause(self, fault: ModelError) -> float:
        """Seconds before the next attempt: those that the server requests, or doubled with each one made."""
        if isinstance(fault, TransientError):
            return 0.0
        if isinstance(fault, BusyError) and fault.retry_after is not None:
            return fault.retry_after
        return min(_FIRST_PAUSE_S * 2.0**self.lost, _LONGEST_PAUSE_S) * (1 - 0.25 * random.random())


@dataclass(frozen=True, kw_only=True)
class ModelSession:
    """Calls for one question; `rows` contains only these calls."""

    owner: LanguageModel
    question_id: str
    method: str
    deadline: float | None
    on_text: OnText | None = None
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
        wanted = json_schema(schema)
        first = await self._prepare(stage_name, tuple(messages), wanted, round_=round_, attempt=0, sampling=sampling)
        reply = await self._call(first)
        self._require(reply, first)
        try:
            return parse_reply(reply.text, schema, cut=reply.is_cut), reply
        except MalformedReplyError as fault:
            if first.reasoned_through(reply):
                again, room = tuple(messages), unannounced_tokens(first.endpoint, first.settings)
            else:
                again, room = (*messages, *asked_again(reply, fault, self.owner.settings.prompts_dir)), 0
        second = await self._prepare(stage_name, again, wanted, round_=round_, attempt=1, sampling=sampling, more=room)
        reply = await self._call(second)
        self._require(reply, first, second)
        try:
            return parse_reply(reply.text, schema, cut=reply.is_cut), reply
        except MalformedReplyError as fault:
            self._require(reply, first, second, text=True)
            self._forget(first, second)
            why = second.cut_words(reply) if reply.is_cut else f"{fault}; use a model that follows JSON mode"
            raise StructuredOutputError(
                f"The model {second.request.model!r} did not send the requested JSON in stage {stage_name!r}, even "
                f"when asked again: {why}."
            ) from None

    async def areply(
        self, stage_name: str, messages: Sequence[Message], *, round_: int = 0, sampling: Sampling = PLAIN
    ) -> Reply:
        """Request free text; the reply is without the reasoning that some models print before it.

        Raises a `WithheldError` if there is no text, and a `StructuredOutputError` if hidden reasoning left no room
        for it, even on the second attempt.
        """
        asked = tuple(messages)
        first = call = await self._prepare(stage_name, asked, None, round_=round_, attempt=0, sampling=sampling)
        reply = await self._call(call)
        if call.reasoned_through(reply):
            more = unannounced_tokens(call.endpoint, call.settings)
            call = await self._prepare(stage_name, asked, None, round_=round_, attempt=1, sampling=sampling, more=more)
            reply = await self._call(call)
        self._require(reply, first, call)
        if reply.is_cut and not without_thinking(reply.text):
            self._forget(first, call)
            raise StructuredOutputError(f"The model {call.request.model!r} sent no text: {call.cut_words(reply)}.")
        if not call.request.stop:  # else a reply may end before its first word
            self._require(reply, first, call, text=True)
        return replace(reply, text=without_thinking(reply.text))

    def _require(self, reply: Reply, *calls: Call, text: bool = False) -> None:
        """Raise a `WithheldError` for a reply that the model or its provider withholds, or without `text` if asked."""
        why: str | None = reply.withheld if reply.withheld in ("refusal", "content_filter") else None
        if why is None and text and not (reply.is_cut or without_thinking(reply.text)):
            why = "reasoning" if reply.text.strip() or reply.withheld else "nothing"
        if why is not None:
            self._forget(*calls)
            request = calls[-1].request
            raise WithheldError(f"In stage {request.stage!r}, the model {request.model!r} {_WITHHELD[why]}.")

    def _forget(self, *calls: Call) -> None:
        """Drop unusable replies from the cache; if kept, they would fail the question forever.

        A run drops them when the question is finished, so that one interrupted by a kill does not pay for them twice.
        """
        keys = [call.row.request for call in calls]
        if self.owner.unusable is not None:
            self.owner.unusable.setdefault((self.question_id, self.method), []).extend(keys)
        elif self.owner.cache is not None:
            self.owner.cache.drop(*keys)

    async def _call(self, call: Call) -> Reply:
        """The reply of the cache or the server, which is asked again if it was busy, late or unreadable.

        This is the only loop of retries: each attempt is reserved and has its own row.
        """
        owner, asked = self.owner, time.perf_counter()
        lock = owner._under_way.setdefault(call.row.request, asyncio.Lock())
        # with a cache, equal calls run one at a time
        async with nullcontext() if owner.cache is None else holding(lock, self.deadline):
            kept = owner.cache.get(call.row.request) if owner.cache is not None else None
            if kept is not None:
                row = replace(call.row, at=kept.at or call.row.at)
                self._record(replace(call, row=row), kept.reply, cached=True)
                return kept.reply
            async with holding(owner.gate(call.endpoint), self.deadline):
                queued = round(time.perf_counter() - asked, 4)
                call = replace(call, row=replace(call.row, queued_s=queued))
                tries = Tries(most=owner.settings.llm_max_retries)
                while True:
                    try:
                        return await self._attempt(call)
                    except _REPEATED as fault:
                        seconds = tries.pause(fault)
                        if not tries.another(fault) or seconds > self._seconds_left(call.endpoint):
                            raise
                    await in_time(asyncio.sleep(seconds), self.deadline)

    async def _prepare(
        self,
        stage_name: str,
        messages: tuple[Message, ...],
        wanted: Mapping[str, Any] | None,
        *,
        round_: int,
        attempt: int,
        sampling: Sampling,
        more: int = 0,
    ) -> Call:
        settings = self.owner.settings
        served, endpoint = self.owner.serving(stage_name)
        connection = await self.owner.connections.to(endpoint)
        request = new_request(served, endpoint, settings, messages, wanted, sampling=sampling, more=more)
        row = LedgerRow(
            at=self.owner.clock(),
            stage=served.name,
            role=served.role,
            tier=served.tier,
            endpoint=endpoint.name,
            provider=endpoint.vendor,
            model=request.model,
            request=request_key(connection.identity, request),
            question_id=self.question_id,
            method=self.method,
            round=round_,
            attempt=attempt,
        )
        return Call(request=request, row=row, endpoint=endpoint, connection=connection, settings=settings)

    async def _attempt(self, call: Call) -> Reply:
        owner = self.owner
        most = self._held(replace(call, row=replace(call.row, at=owner.clock())))  # priced when sent, not when prepared
        reserved = await owner.budget.acquire(most, model=call.request.model, deadline=self.deadline)
        try:
            seconds = self._seconds_left(call.endpoint)
        except DeadlineError:
            owner.budget.settle(reserved, Decimal(0))
            raise
        call = replace(call, row=replace(call.row, at=owner.clock()))
        # a trace shows it under the name of its stage, below the node that makes it
        about = ("stage", "role", "tier", "round", "attempt", "question_id", "method")
        config: RunnableConfig = {
            "run_name": call.row.stage,
            "tags": [call.row.stage, call.row.tier],
            "metadata": {name: getattr(call.row, name) for name in about},
        }
        started = time.perf_counter()
        outcome: Reply | None = None
        fault: BaseException | None = None
        error: str | None = CANCELLED
        unbilled = False
        try:
            async with asyncio.timeout(seconds):
                outcome = await call.connection.complete(call.request, config, self.on_text)
            error = None
            if outcome.is_cut and (known := (call.request.stage, call.endpoint.name)) not in owner._warned:
                owner._warned.add(known)
                _LOG.warning("In stage %r %s.", call.request.stage, call.cut_words(outcome))
            if owner.cache is not None:
                # before the ledger row: a kill between the two must not cause the call to be paid twice
                owner.cache.put(call.row.request, outcome, call.row.at)
        except TimeoutError:
            error, fault = "timeout", self._late(seconds)
            raise fault from None
        except MetaRagError as raised:
            error, fault = type(raised).__name__, raised
            unbilled = outcome is None and not (isinstance(raised, _PERHAPS_BILLED) or type(raised) is ModelError)
            raise
        except Exception as raised:
            error, fault = type(raised).__name__, raised
            raise
        finally:
            held = None if unbilled or outcome is not None else self._held(call)
            row = replace(call.row, latency_s=round(time.perf_counter() - started, 4), error=error, paid_usd=held)
            recorded = False
            try:
                row, recorded = self._record(replace(call, row=row), outcome, fault=fault), True
            finally:  # a failed ledger write must not leave others waiting for this reservation
                owner.budget.settle(reserved, Decimal(0) if unbilled else row.paid_usd, recorded=recorded)
        return outcome

    def _record(
        self, call: Call, reply: Reply | None, *, cached: bool = False, fault: BaseException | None = None
    ) -> LedgerRow:
        row = call.row
        if reply is not None:
            model, prices = priced_model(call.settings, call.endpoint, at=row.at)
            used = reply.usage
            cost = None if used is None else price(used, model=model, prices=prices, at=row.at)
            row = replace(
                row,
                cached=cached,
                finish_reason=reply.finish_reason,
                answered_by=reply.model,
                cost_usd=cost.usd if cost else None,
                paid_usd=Decimal(0) if cached else cost.usd if cost else self._held(call, reply),
                peak=cost.peak if cost else False,
                **usage_fields(reply.usage),
            )
        self._add(row, call.request, reply or fault or asyncio.CancelledError())
        return row

    def _held(self, call: Call, reply: Reply | None = None) -> Decimal | None:
        # if the bill is unknown, the maximum cost counts as paid, also in a resumed run
        return call.highest(reply) if self.owner.budget.holds else None

    def _add(self, row: LedgerRow, request: Request, outcome: Reply | BaseException) -> None:
        self.rows.append(row)
        self.owner.ledger.add(row)
        if self.owner.tape is not None:
            self.owner.tape.keep(row, request, outcome)

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


async def traced(name: str, work: Callable[[], Awaitable[Result]], config: "RunnableConfig | None" = None) -> Result:
    """Do a piece of work as one run of a trace, below which the graph and every model call appear."""
    from langchain_core.runnables import RunnableLambda

    async def run(_: None) -> Result:
        return await work()

    done: Result = await RunnableLambda(run).with_config(run_name=name).ainvoke(None, config)
    return done
