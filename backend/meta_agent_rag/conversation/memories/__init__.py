"""Memories, one file each; a file that exports `MEMORY` is found by itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from ... import discovery
from ...discovery import exported
from ...errors import SettingsError, UnknownNameError
from ...settings import Settings
from ..history import Exchange

__all__ = ["Limits", "Memory", "Share", "by_name", "discover_memories", "memory_named"]

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
                f"{settings.memory_exchanges!r}; raise the former or lower the latter."
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


@cache
def discover_memories() -> Mapping[str, Memory]:
    """Every memory of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "MEMORY", Memory))


def by_name(memories: Iterable[Memory]) -> Mapping[str, Memory]:
    """An immutable mapping from names to memories; a name that comes twice raises `DuplicateNameError`."""
    return discovery.by_name(memories, "memories")


def memory_named(name: str) -> Memory:
    """The memory with that name (MEMORY). Raises `UnknownNameError`."""
    known = discover_memories()
    if name not in known:
        raise UnknownNameError("memory", name, list(known))
    return known[name]
