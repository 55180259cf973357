"""What a memory file exports: a rule that shares exchanges out, without any call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ...errors import SettingsError
from ...settings import Settings
from ..history import Exchange

_TIMES_FOLD_AT = 4


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is remembered verbatim.

    `exchanges` are kept when older ones go, which they do once `fold_at` exchanges have gathered or once the
    exchanges take more than `tokens`. With 0 exchanges each one goes at once, whatever `fold_at` says.
    """

    exchanges: int
    fold_at: int
    tokens: int

    @property
    def most(self) -> int:
        """The hard bound: while folding fails, exchanges gather up to four times `fold_at`, then the oldest go."""
        return _TIMES_FOLD_AT * self.fold_at

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits that settings give; raises `SettingsError` where they contradict each other."""
        if settings.memory_fold_at <= settings.memory_exchanges:
            raise SettingsError(
                f"MEMORY_FOLD_AT {settings.memory_fold_at!r} is not more than MEMORY_EXCHANGES "
                f"{settings.memory_exchanges!r}; raise the one or lower the other."
            )
        return cls(exchanges=settings.memory_exchanges, fold_at=settings.memory_fold_at, tokens=settings.memory_tokens)


@dataclass(frozen=True, kw_only=True)
class Share:
    """Exchanges shared out: `kept` stay verbatim, `folded` go into the summary, `dropped` are forgotten.

    Each is in the order of turns, and together they are what was shared out.
    """

    kept: tuple[Exchange, ...]
    folded: tuple[Exchange, ...] = ()
    dropped: tuple[Exchange, ...] = ()


Sharing: TypeAlias = Callable[[tuple[Exchange, ...], Limits], Share]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A way to remember: `share` is asked after every exchange."""

    name: str
    share: Sharing
