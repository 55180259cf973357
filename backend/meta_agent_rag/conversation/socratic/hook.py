"""What a hook of the coach is: asked before the write, or shown the draft after it.

A hook is one file of the folder `hooks` that exports `PRE_HOOK` or `POST_HOOK`; nothing else names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ..history import Exchange, History
from .levels import Level
from .meanings import Meanings


@dataclass(frozen=True, kw_only=True)
class ScopeScore:
    """How near a message is to the subject, the nearest topic, and the score from which on a message belongs to it."""

    topic: str
    score: float
    threshold: float


class Scope(Protocol):
    """Knows what the subject is."""

    async def score(self, message: str, topic: str = "") -> ScopeScore | None:
        """The nearest topic, or the chosen one with its score; `None` if there is nothing to compare with."""


@dataclass(frozen=True, kw_only=True)
class IncomingMessage:
    """What a pre-hook is given: a message, what was said before, and what earlier hooks ruled.

    `scope` is `None` where nothing is out of scope, `meanings` where words alone are to be judged; `topic` is the one
    that the learner chose, or empty.
    """

    message: str
    history: History
    level: Level
    scope: Scope | None = None
    meanings: Meanings | None = None
    topic: str = ""
    rulings: "tuple[Ruling, ...]" = ()

    @property
    def in_emergency(self) -> bool:
        """Has an earlier hook found a deadlock?"""
        return any(ruling.emergency for ruling in self.rulings)

    @property
    def pending(self) -> Exchange | None:
        """The exchange just before, where it is the coach's; `None` in a new conversation or after another mode."""
        last = self.history.exchanges[-1] if self.history.exchanges else None
        return last if last is not None and last.is_coaching else None


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What a pre-hook decides.

    `refusal` is shown instead of any reply, and no model is asked; `emergency` says why the coach may give the
    core hint. `detail` is for the trace, `score` the measured value if there is one, `topic` the nearest.
    """

    refusal: str = ""
    emergency: str = ""
    detail: str = ""
    score: float | None = None
    topic: str = ""


@dataclass(frozen=True, kw_only=True)
class CoachDraft:
    """What a post-hook is given: a draft, and what it answers.

    `acknowledges` is the structured field of the reply; `sounds_right` where a sentence of it is like those that
    acknowledge; `is_hint` where the draft is to break a deadlock.
    """

    text: str
    message: str
    level: Level
    acknowledges: bool = False
    sounds_right: bool = False
    is_hint: bool = False


@dataclass(frozen=True, kw_only=True)
class RuleFinding:
    """What a post-hook finds: `violation` says what rule the draft breaks, empty for none."""

    violation: str = ""
    acknowledged: bool = False


@runtime_checkable
class PreHook(Protocol):
    """Looks at a message before the coach writes; asked in the order of `priority`, the lowest first."""

    @property
    def name(self) -> str: ...

    @property
    def priority(self) -> int: ...

    async def before(self, incoming: IncomingMessage) -> Ruling:
        """The ruling on a message; an empty one lets it pass. Never fails, whatever the text."""


@runtime_checkable
class PostHook(Protocol):
    """Looks at a draft before anybody sees it; asked in the order of `priority`, the lowest first."""

    @property
    def name(self) -> str: ...

    @property
    def priority(self) -> int: ...

    def after(self, draft: CoachDraft) -> RuleFinding:
        """What is to be said of a draft; an empty finding lets it pass. Never fails, whatever the text."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """All hooks, each side in its order."""

    before: Sequence[PreHook] = field(default_factory=tuple)
    after: Sequence[PostHook] = field(default_factory=tuple)

    def without(self, *names: str) -> "Hooks":
        """The hooks but for those of these names, for measuring what each is worth."""
        return Hooks(
            before=tuple(hook for hook in self.before if hook.name not in names),
            after=tuple(hook for hook in self.after if hook.name not in names),
        )
