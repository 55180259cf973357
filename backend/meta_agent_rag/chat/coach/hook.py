"""The interface of the coach's hooks: called before the write, or on the draft after it.

A hook is one file of the folder `hooks` that exports `PRE_HOOK` or `POST_HOOK`; it is registered nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..history import Exchange, History
from ..intent import Interpretation
from .levels import Level


@dataclass(frozen=True, kw_only=True)
class ScopeScore:
    """A message's similarity to the subject, the nearest topic, and the score from which a message is in scope."""

    topic: str
    score: float
    threshold: float


class Scope(Protocol):
    """Represents the subject."""

    async def score(self, message: str, *, asked: str = "") -> ScopeScore | None:
        """The nearest topic with its score; `None` if there is nothing to compare with.

        A reply to the question `asked` is also compared with that question, and has its own threshold.
        """


@dataclass(frozen=True, kw_only=True)
class IncomingMessage:
    """The input of a pre-hook: a message, the history, and the rulings of earlier hooks.

    `scope` is `None` if nothing is out of scope; `topic` is the one that the learner chose, or empty. `reading` is what
    the message was taken for, in any language; `None` if only phrases are to be judged.
    """

    message: str
    history: History
    level: Level
    scope: Scope | None = None
    topic: str = ""
    reading: Interpretation | None = None
    rulings: "tuple[Ruling, ...]" = ()

    @property
    def emergency(self) -> str:
        """Why the coach may give the core hint, if an earlier hook detected a deadlock; else empty."""
        return next((ruling.emergency for ruling in self.rulings if ruling.emergency), "")

    @property
    def pending(self) -> Exchange | None:
        """The preceding exchange, if it is the coach's; `None` in a new conversation or after another mode."""
        last = self.history.exchanges[-1] if self.history.exchanges else None
        return last if last is not None and last.is_coaching else None


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """A pre-hook's decision.

    `refusal` is shown instead of a reply, and no model is called; `emergency` says why the coach may give the
    core hint. `detail` is for the trace, `score` the measured value, if any.
    """

    refusal: str = ""
    emergency: str = ""
    detail: str = ""
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class CoachDraft:
    """The input of a post-hook: a draft, and the message it answers.

    `acknowledges` is the structured field of the reply; `is_hint` is set if the draft is to break a deadlock. `answers`
    are what the drafts so far named as the answer to be found; `earlier` is what the learner has said to the coach
    before the message.
    """

    text: str
    message: str
    level: Level
    acknowledges: bool = False
    is_hint: bool = False
    answers: Sequence[str] = ()
    earlier: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class RuleFinding:
    """A post-hook's finding: `violation` names the rule that the draft breaks, empty for none."""

    violation: str = ""
    acknowledged: bool = False


@runtime_checkable
class PreHook(Protocol):
    """Examines a message before the coach writes; called in ascending order of `priority`."""

    @property
    def name(self) -> str: ...

    @property
    def priority(self) -> int: ...

    async def before(self, incoming: IncomingMessage) -> Ruling:
        """The ruling on a message; an empty one lets it pass. Must not raise for any text."""


@runtime_checkable
class PostHook(Protocol):
    """Examines a draft before it is shown; called in ascending order of `priority`."""

    @property
    def name(self) -> str: ...

    @property
    def priority(self) -> int: ...

    def after(self, draft: CoachDraft) -> RuleFinding:
        """The finding on a draft; an empty one lets it pass. Must not raise for any text."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """All hooks, each kind in order."""

    before: Sequence[PreHook] = field(default_factory=tuple)
    after: Sequence[PostHook] = field(default_factory=tuple)
