"""The coach: one write over retrieved evidence, held to its level by hooks before and after."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from ...agent.prompting import ReplyModel, pack
from ...errors import BudgetError, ModelError, StructuredOutputError
from ...llm.client import LanguageModel, ModelSession
from ...llm.ledger import LedgerRow
from ...llm.messages import Message
from ...prompts import phrase, prompt
from ...prompts.fencing import fenced
from ...retrieval.hybrid import Retriever
from ...retrieval.limited import limited
from ...retrieval.passage import Found
from ..history import COACH, HINT, Exchange, History, TurnReply, clipped_at_sentence
from ..intent import Interpretation
from ..phrases import files_of
from .hook import CoachDraft, Hooks, IncomingMessage, RuleFinding, Ruling, Scope
from .hooks import discover_hooks
from .levels import Level, Socratic, levels
from .scope import Topic, topic_named
from .words import cut, ends_with_question, language_of, last_question, length, reason

METHOD = "coach"
"""The name of the coach's calls in ledger rows."""

TOP_K = 5
"""The number of passages that the coach sees."""

Outcome: TypeAlias = Literal["accepted", "regenerated", "shortened", "template", "cut", "out_of_scope"]
LATEST_EXCHANGES = 5
"""The number of coaching exchanges sent verbatim; older ones are summarised."""

_LONGEST_LINE = 160


class CoachingReply(ReplyModel):
    """Stage `coach`; `answer` is what the learner is to find, which is compared with the reply and never shown."""

    reply: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        json_schema_extra={"maxLength": 400}
    )
    answer: str | None = Field(default=None, json_schema_extra={"maxLength": 80})
    acknowledges_right_answer: bool = False


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of the system message by name, for the trace."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A draft, the answer it is to hide, and the post-hooks' finding; the text is empty if it was not readable."""

    text: str
    finding: RuleFinding
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class CoachTrace:
    """How a reply was produced.

    `layers` are those of the system message; `rulings` holds each pre-hook's decision by name; `attempts` the draft
    and, if it broke a rule, the regeneration. `outcome` says what the user saw: the draft (`accepted`), the
    `regenerated` one, its last question (`shortened`), a question of the level's list (`template`), a hint that
    was `cut`, or, if no model was called, `out_of_scope`.
    """

    outcome: Outcome
    layers: tuple[Layer, ...] = ()
    rulings: tuple[tuple[str, Ruling], ...] = ()
    attempts: tuple[Attempt, ...] = ()
    evidence: tuple[Found, ...] = ()
    fault: str = ""

    @property
    def draft(self) -> str:
        """The model's first draft."""
        return self.attempts[0].text if self.attempts else ""

    @property
    def violations(self) -> tuple[str, ...]:
        """The rules that the drafts broke, in order."""
        return tuple(attempt.finding.violation for attempt in self.attempts if attempt.finding.violation)

    @property
    def emergency(self) -> str:
        """Why a hint was allowed; empty if it was not."""
        return next((ruling.emergency for _, ruling in self.rulings if ruling.emergency), "")


@dataclass(frozen=True, kw_only=True)
class CoachReply(TurnReply):
    """A reply of the coach; `acknowledged` if it says that the learner's answer was right."""

    acknowledged: bool = False
    trace: CoachTrace
    calls: tuple[LedgerRow, ...] = ()

    @property
    def refused(self) -> str | None:
        """Why the message was rejected without a model call; `None` if it was not."""
        return self.trace.outcome if self.trace.outcome == "out_of_scope" else None


@dataclass(frozen=True, kw_only=True)
class _Task:
    """A message that passed the pre-hooks."""

    incoming: IncomingMessage
    emergency: str
    messages: tuple[Message, ...]

    def draft(self, text: str, answers: Sequence[str], *, acknowledges: bool = False) -> CoachDraft:
        incoming = self.incoming
        return CoachDraft(
            text=text,
            answers=answers,
            earlier=[one.question for one in incoming.history.exchanges if one.is_coaching],
            message=incoming.message,
            level=incoming.level,
            acknowledges=acknowledges,
            is_hint=bool(self.emergency),
        )


@dataclass(frozen=True, kw_only=True)
class Coach:
    """Answers a learner with questions, over one corpus; without a `scope` nothing is off its subject.

    With a chosen one of the `topics`, it uses only the documents of that topic.
    """

    model: LanguageModel
    retriever: Retriever
    scope: Scope | None = None
    topics: tuple[Topic, ...] = ()
    hooks: Hooks = field(default_factory=discover_hooks)

    async def __call__(
        self,
        message: str,
        *,
        history: History,
        socratic: Socratic,
        reading: Interpretation | None = None,
        deadline: float | None = None,
        question_id: str = "",
    ) -> CoachReply:
        """The reply to a message; never text of the model that breaks the level's rules.

        Ledger rows carry the `question_id`, or else the number of the turn.
        Makes one call, plus at most one if a draft breaks a rule. Raises a `ModelError` or a `BudgetError` if
        there is not even a first draft.
        """
        with files_of(self.model.settings.coach_dir):
            incoming = IncomingMessage(
                message=message,
                history=history,
                level=levels()[socratic.level],
                scope=self.scope,
                topic=socratic.topic,
                reading=reading,
            )
            session = self.model.session(question_id or f"turn {history.turns + 1}", method=METHOD, deadline=deadline)
            return await self._reply(incoming, session)

    async def _reply(self, incoming: IncomingMessage, session: ModelSession) -> CoachReply:
        history, rulings = incoming.history, await self._rulings(incoming)
        topic = incoming.topic or next((ruling.topic for _, ruling in rulings if ruling.topic), history.topic)
        refusal = next((ruling.refusal for _, ruling in rulings if ruling.refusal), "")
        if refusal:
            return CoachReply(
                text=refusal,
                remembered=False,
                kind=COACH,
                topic=topic,
                trace=CoachTrace(outcome="out_of_scope", rulings=rulings),
            )
        emergency = next((ruling.emergency for _, ruling in rulings if ruling.emergency), "")
        settings = self.model.settings
        found = (await self._about(incoming.topic).retrieve(_queries(incoming, emergency), k=TOP_K)).found
        packed = pack(found, self.model.evidence_tokens(), marked=True)
        layers = system_layers(incoming.level, history, packed.text, emergency, settings.prompts_dir)
        task = _Task(incoming=incoming, emergency=emergency, messages=coach_messages(layers, incoming))
        attempts, fault = await self._attempts(task, session)
        text, outcome = self._shown(task, attempts)
        trace = CoachTrace(
            outcome=outcome, layers=layers, rulings=rulings, attempts=attempts, evidence=found, fault=fault
        )
        return CoachReply(
            text=text,
            kind=HINT if emergency and outcome != "template" else COACH,
            acknowledged=attempts[-1].finding.acknowledged and outcome != "template",
            topic=topic,
            trace=trace,
            calls=tuple(session.rows),
        )

    def _about(self, topic: str) -> Retriever:
        documents = topic_named(self.topics, topic).documents if topic and self.topics else frozenset()
        return limited(self.retriever, documents)

    async def _rulings(self, incoming: IncomingMessage) -> tuple[tuple[str, Ruling], ...]:
        """The rulings of all pre-hooks, up to the first refusal."""
        rulings: list[tuple[str, Ruling]] = []
        for hook in self.hooks.before:
            ruling = await hook.before(incoming)
            rulings.append((hook.name, ruling))
            incoming = replace(incoming, rulings=(*incoming.rulings, ruling))
            if ruling.refusal:
                break
        return tuple(rulings)

    async def _attempts(self, task: _Task, session: ModelSession) -> tuple[tuple[Attempt, ...], str]:
        """The draft, one regeneration if it breaks a rule, and why that failed, if it did."""
        try:
            first = await self._attempt(task, session, task.messages)
        except StructuredOutputError as error:
            # the client has already asked again, and that was the one regeneration
            return (Attempt(text="", finding=RuleFinding(violation=reason("malformed"))),), str(error)
        if not first.finding.violation:
            return (first,), ""
        again = (*task.messages, *self._asked_again(task, first))
        try:
            return (first, await self._attempt(task, session, again, first)), ""
        except BudgetError as error:
            return (first,), str(error)
        except ModelError as error:
            if error.stops_run:
                raise
            return (first,), str(error)

    async def _attempt(
        self, task: _Task, session: ModelSession, messages: tuple[Message, ...], *failed: Attempt
    ) -> Attempt:
        """A draft, compared also with the answers that failed ones were to hide."""
        reply = await session.ainvoke("coach", messages, CoachingReply, round_=len(failed))
        answer = (reply.answer or "").strip()
        draft = task.draft(reply.reply, [answer, *_answers(failed)], acknowledges=reply.acknowledges_right_answer)
        return Attempt(text=reply.reply, finding=self._finding(draft), answer=answer)

    def _finding(self, draft: CoachDraft) -> RuleFinding:
        """The combined findings of all post-hooks."""
        findings = [hook.after(draft) for hook in self.hooks.after]
        return RuleFinding(
            violation=" ".join(finding.violation for finding in findings if finding.violation),
            acknowledged=any(finding.acknowledged for finding in findings),
        )

    def _asked_again(self, task: _Task, failed: Attempt) -> tuple[Message, Message]:
        level = task.incoming.level
        folder = self.model.settings.prompts_dir
        task_text = prompt("coach_retry", folder).text(constraint=level.constraint, reason=failed.finding.violation)
        if task.emergency:
            task_text = prompt("coach_retry_hint", folder).text(limit=level.hint_limit, reason=failed.finding.violation)
        return (Message(role="assistant", content=failed.text), Message(role="user", content=task_text))

    def _shown(self, task: _Task, attempts: tuple[Attempt, ...]) -> tuple[str, Outcome]:
        """What the user sees: the last draft if it breaks no rule, else a version repaired by code.

        Of the level's questions, it is the first from the turn's on that breaks none.
        """
        last, incoming, answers = attempts[-1], task.incoming, _answers(attempts)
        if last.text and not last.finding.violation:
            return last.text, "accepted" if len(attempts) == 1 else "regenerated"
        for attempt in reversed(attempts):
            mended, outcome = _mended(attempt.text, task)
            if mended and not self._finding(task.draft(mended, answers)).violation:
                return mended, outcome
        questions = incoming.level.questions(language_of(incoming.message), incoming.history.turns)
        fitting = (one for one in questions if not self._finding(task.draft(one, answers)).violation)
        return next(fitting, questions[0]), "template"


def _answers(attempts: Sequence[Attempt]) -> list[str]:
    """The answers that the drafts were to hide."""
    return [attempt.answer for attempt in attempts if attempt.answer]


def _mended(text: str, task: _Task) -> tuple[str, Outcome]:
    """The version that code makes of a draft: the beginning of a hint, else the last question."""
    level = task.incoming.level
    if task.emergency:
        return cut(text, level.hint_limit), "cut"
    question = last_question(text)
    return question if length(question) <= level.limit else "", "shortened"


def _queries(incoming: IncomingMessage, emergency: str) -> list[str]:
    """The search queries: the learner's words, and the question they answer, which names the subject."""
    pending: Exchange | None = incoming.pending
    own = [] if emergency and pending is not None else [incoming.message]
    return own if pending is None else [*own, pending.answer, pending.question]


def obeys(text: str, level: int) -> bool:
    """Whether a text follows the rules of a level, as a reader would judge it."""
    return length(text) <= levels()[level].limit and ends_with_question(text)


def system_layers(
    level: Level, history: History, passages: str, emergency: str, folder: Path | None
) -> tuple[Layer, ...]:
    """Style, summary of the past, evidence and, only in a deadlock, the emergency override, in this order.

    `passages` is the packed evidence, `emergency` the reason why the coach may give a hint, or empty.
    """
    limit = level.hint_limit if emergency else level.limit
    style = prompt("coach", folder).text(style=level.style, limit=limit)
    past = prompt("coach_past", folder).text(past=summary_of(history) or phrase("nothing_yet"))
    evidence = prompt("coach_evidence", folder).text(passages=passages or phrase("no_passage"))
    layers = [Layer(name="style", text=style), Layer(name="past", text=past), Layer(name="evidence", text=evidence)]
    if emergency:
        override = prompt("coach_emergency", folder).text(reason=emergency, limit=limit)
        layers.append(Layer(name="emergency", text=override))
    return tuple(layers)


def coach_messages(layers: Sequence[Layer], incoming: IncomingMessage) -> tuple[Message, ...]:
    """The messages of a call: the layers as one system message, the latest coaching turns, the learner's message."""
    messages = [Message(role="system", content="\n\n".join(layer.text for layer in layers))]
    for exchange in _replayed(incoming.history):
        messages += [
            Message(role="user", content=exchange.question),
            Message(role="assistant", content=exchange.answer),
        ]
    return (*messages, Message(role="user", content=incoming.message))


def summary_of(history: History) -> str:
    """Everything that is not replayed: the running summary, then one line per exchange, made without a call.

    A teacher's explanation is reduced to a line, so that the coach does not continue explaining.
    """
    replayed = set(_replayed(history))
    lines = [_line(exchange) for exchange in history.exchanges if exchange not in replayed]
    return fenced("\n".join([*([history.summary] if history.summary else []), *lines]))


def _replayed(history: History) -> tuple[Exchange, ...]:
    """The latest exchanges of the current coaching, i.e. since the last turn in another mode."""
    latest: list[Exchange] = []
    for exchange in reversed(history.exchanges):
        if not exchange.is_coaching or len(latest) == LATEST_EXCHANGES:
            break
        latest.insert(0, exchange)
    return tuple(latest)


def _line(exchange: Exchange) -> str:
    asked = clipped_at_sentence(" ".join(exchange.standalone.split()), _LONGEST_LINE)
    answered = exchange.short_answer or exchange.answer
    return f"- {asked} - {clipped_at_sentence(' '.join(answered.split()), _LONGEST_LINE)}"
