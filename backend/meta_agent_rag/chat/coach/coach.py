"""The coach: one write over retrieved evidence, held to its level by hooks before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from ...agent.prompting import ReplyModel, pack
from ...errors import BudgetError, ModelError, StructuredOutputError
from ...llm.client import LanguageModel, ModelSession
from ...llm.messages import Message
from ...prompts import fenced, phrase, prompt
from ...retrieval.hybrid import Retriever
from ...retrieval.passage import Found
from ...retrieval.retriever import limited
from ..history import COACH, HINT, Exchange, History, TurnReply, clipped
from ..intent import Interpretation
from ..phrases import files_of
from .hook import CoachDraft, Hooks, IncomingMessage, RuleFinding, Ruling, Scope
from .hooks import discover_hooks
from .levels import Socratic, levels
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
class Attempt:
    """A draft, the answer it is to hide, and the post-hooks' finding; the text is empty if it was not readable."""

    text: str
    finding: RuleFinding
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class CoachTrace:
    """How a reply was produced.

    `layers` of the system message and `rulings` of the pre-hooks are by name; `attempts` are the draft and, if it broke
    a rule, the regeneration. `outcome` says what the user saw: the draft (`accepted`), the `regenerated` one, its last
    question (`shortened`), a question of the level's list (`template`), a hint that was `cut`, or, if no model was
    called, `out_of_scope`.
    """

    outcome: Outcome
    layers: Mapping[str, str] = field(default_factory=dict)
    rulings: tuple[tuple[str, Ruling], ...] = ()
    attempts: tuple[Attempt, ...] = ()
    evidence: tuple[Found, ...] = ()

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

    @property
    def refused(self) -> str | None:
        """Why the message was rejected without a model call; `None` if it was not."""
        return self.trace.outcome if self.trace.outcome == "out_of_scope" else None


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
            named = question_id or f"turn {history.turns + 1}"
            session = self.model.session(named, method=METHOD, deadline=deadline)
            for hook in self.hooks.before:
                incoming = replace(incoming, rulings=(*incoming.rulings, await hook.before(incoming)))
                if incoming.rulings[-1].refusal:
                    break
            rulings = tuple(zip((hook.name for hook in self.hooks.before), incoming.rulings, strict=False))
            if incoming.rulings and (refusal := incoming.rulings[-1].refusal):
                trace = CoachTrace(outcome="out_of_scope", rulings=rulings)
                return CoachReply(text=refusal, remembered=False, kind=COACH, trace=trace)
            found = await self._found(incoming)
            packed = pack(found, self.model.evidence_tokens(), marked=True)
            layers = system_layers(incoming, packed.text, self.model.settings.prompts_dir)
            attempts = await self._attempts(incoming, coach_messages(layers, incoming), session)
            text, outcome = self._shown(incoming, attempts)
        trace = CoachTrace(outcome=outcome, layers=layers, rulings=rulings, attempts=attempts, evidence=found)
        return CoachReply(
            text=text,
            kind=HINT if incoming.emergency and outcome != "template" else COACH,
            acknowledged=attempts[-1].finding.acknowledged and outcome != "template",
            trace=trace,
            calls=tuple(session.rows),
        )

    async def _found(self, incoming: IncomingMessage) -> tuple[Found, ...]:
        """Passages on the learner's words, and on the question that they answer, which names the subject."""
        pending, topic = incoming.pending, incoming.topic
        own = [] if incoming.emergency and pending is not None else [incoming.message]
        queries = own if pending is None else [*own, pending.answer, pending.question]
        documents = topic_named(self.topics, topic).documents if topic and self.topics else frozenset()
        return (await limited(self.retriever, documents).retrieve(queries, k=TOP_K)).found

    async def _attempts(
        self, incoming: IncomingMessage, messages: tuple[Message, ...], session: ModelSession
    ) -> tuple[Attempt, ...]:
        """The draft, and one regeneration if it breaks a rule, as far as the model replies."""
        try:
            first = await self._attempt(incoming, messages, session)
        except StructuredOutputError:
            # the client has already asked again, and that was the one regeneration
            return (Attempt(text="", finding=RuleFinding(violation=reason("malformed"))),)
        if not first.finding.violation:
            return (first,)
        level, why, folder = incoming.level, first.finding.violation, self.model.settings.prompts_dir
        if incoming.emergency:
            text = prompt("coach_retry_hint", folder).text(limit=level.hint_limit, reason=why)
        else:
            text = prompt("coach_retry", folder).text(constraint=level.constraint, reason=why)
        again = (Message(role="assistant", content=first.text), Message(role="user", content=text))
        try:
            return (first, await self._attempt(incoming, (*messages, *again), session, first))
        except (ModelError, BudgetError) as error:
            if isinstance(error, ModelError) and error.stops_run:
                raise
            return (first,)

    async def _attempt(
        self, incoming: IncomingMessage, messages: tuple[Message, ...], session: ModelSession, *failed: Attempt
    ) -> Attempt:
        """A draft, compared also with the answers that failed ones were to hide."""
        reply = await session.ainvoke("coach", messages, CoachingReply, round_=len(failed))
        attempt = Attempt(text=reply.reply, finding=RuleFinding(), answer=(reply.answer or "").strip())
        finding = self._finding(
            incoming, attempt.text, (attempt, *failed), acknowledges=reply.acknowledges_right_answer
        )
        return replace(attempt, finding=finding)

    def _finding(
        self, incoming: IncomingMessage, text: str, attempts: Sequence[Attempt], *, acknowledges: bool = False
    ) -> RuleFinding:
        """The combined findings of all post-hooks on a text, which must hide the answers of these attempts."""
        draft = CoachDraft(
            text=text,
            answers=[attempt.answer for attempt in attempts if attempt.answer],
            earlier=[one.question for one in incoming.history.exchanges if one.is_coaching],
            message=incoming.message,
            level=incoming.level,
            acknowledges=acknowledges,
            is_hint=bool(incoming.emergency),
        )
        findings = [hook.after(draft) for hook in self.hooks.after]
        return RuleFinding(
            violation=" ".join(finding.violation for finding in findings if finding.violation),
            acknowledged=any(finding.acknowledged for finding in findings),
        )

    def _shown(self, incoming: IncomingMessage, attempts: Sequence[Attempt]) -> tuple[str, Outcome]:
        """What the user sees: the last draft if it breaks no rule, else a version repaired by code.

        Of the level's questions, it is the first from the turn's on that breaks none.
        """
        last, level = attempts[-1], incoming.level
        if last.text and not last.finding.violation:
            return last.text, "accepted" if len(attempts) == 1 else "regenerated"
        for attempt in reversed(attempts):
            mended = cut(attempt.text, level.hint_limit) if incoming.emergency else last_question(attempt.text)
            if mended and not self._finding(incoming, mended, attempts).violation:
                return mended, "cut" if incoming.emergency else "shortened"
        questions = level.questions(language_of(incoming.message), incoming.history.turns)
        fitting = (one for one in questions if not self._finding(incoming, one, attempts).violation)
        return next(fitting, questions[0]), "template"


def obeys(text: str, level: int) -> bool:
    """Whether a text follows the rules of a level, as a reader would judge it."""
    return length(text) <= levels()[level].limit and ends_with_question(text)


def system_layers(incoming: IncomingMessage, passages: str, folder: Path | None) -> dict[str, str]:
    """Style, summary of the past, the packed passages and, only in a deadlock, the emergency override."""
    level, emergency = incoming.level, incoming.emergency
    limit = level.hint_limit if emergency else level.limit
    style = prompt("coach", folder).text(style=level.style, limit=limit)
    past = prompt("coach_past", folder).text(past=summary_of(incoming.history) or phrase("nothing_yet"))
    evidence = prompt("coach_evidence", folder).text(passages=passages or phrase("no_passage"))
    layers = {"style": style, "past": past, "evidence": evidence}
    if emergency:
        layers["emergency"] = prompt("coach_emergency", folder).text(reason=emergency, limit=limit)
    return layers


def coach_messages(layers: Mapping[str, str], incoming: IncomingMessage) -> tuple[Message, ...]:
    """The messages of a call: the layers as one system message, the latest coaching turns, the learner's message."""
    messages = [Message(role="system", content="\n\n".join(layers.values()))]
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
    current = takewhile(lambda exchange: exchange.is_coaching, reversed(history.exchanges))
    return tuple(islice(current, LATEST_EXCHANGES))[::-1]


def _line(exchange: Exchange) -> str:
    asked = clipped(" ".join(exchange.standalone.split()), _LONGEST_LINE)
    answered = exchange.short_answer or exchange.answer
    return f"- {asked} - {clipped(' '.join(answered.split()), _LONGEST_LINE)}"
