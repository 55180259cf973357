"""Memories, one file each; a file that exports `MEMORY` is discovered automatically."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from ...discovery import by_name, exported, named
from ...errors import SettingsError
from ...settings import Settings
from ..history import Exchange

__all__ = ["Limits", "Memory", "Share", "discover_memories", "memory_named"]

_TIMES_FOLD_AT = 4


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is remembered verbatim.

    `exchanges` is the number kept when older ones are folded, which happens once `fold_at` exchanges have gathered or
    they take more than `tokens`. With 0 exchanges each one is folded at once, regardless of `fold_at`.
    """

    exchanges: int
    fold_at: int
    tokens: int

    @property
    def most(self) -> int:
        """The hard bound: if folding keeps failing, the oldest are dropped beyond four times `fold_at` exchanges."""
        return _TIMES_FOLD_AT * self.fold_at

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits from the settings; raises `SettingsError` if they contradict each other."""
        if settings.memory_fold_at <= settings.memory_exchanges:
            raise SettingsError(
                f"MEMORY_FOLD_AT {settings.memory_fold_at!r} is not more than MEMORY_EXCHANGES "
                f"{settings.memory_exchanges!r}; raise MEMORY_FOLD_AT or lower MEMORY_EXCHANGES."
            )
        return cls(exchanges=settings.memory_exchanges, fold_at=settings.memory_fold_at, tokens=settings.memory_tokens)


@dataclass(frozen=True, kw_only=True)
class Share:
    """A partition of exchanges: `kept` stay verbatim, `folded` go into the summary, `dropped` are forgotten.

    Each part is in the order of turns; together they contain all exchanges.
    """

    kept: tuple[Exchange, ...]
    folded: tuple[Exchange, ...] = ()
    dropped: tuple[Exchange, ...] = ()


Sharing: TypeAlias = Callable[[tuple[Exchange, ...], Limits], Share]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A way to remember: `share` is called after every exchange; `about` is one clause for readers."""

    name: str
    share: Sharing
    about: str = ""


@cache
def discover_memories() -> Mapping[str, Memory]:
    """Every memory of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "MEMORY", Memory), "memories")


def memory_named(name: str) -> Memory:
    """The memory with that name (MEMORY). Raises `UnknownNameError`."""
    return named("memory", name, discover_memories())
