"""Updates that are seen whole or not at all, in engines that change points one request at a time.

A point carries `since`, the version of the collection in which it appears, and, once it is outdated,
`until`, the version in which it is gone. A marker holds the current version V and, while an update runs,
its target V + 1. An update

1. sets the target, which hides points with `since` = V + 1 from searches, and writes the new ones;
2. gives the outdated ones `until` = V + 1;
3. sets the version to V + 1, the one step that counts: now points with `until` = V + 1 are hidden;
4. deletes those, and takes the target away.

A search reads the marker again when it is done, and starts again if it has changed; so it needs no lock,
and may run in another process. Whatever interrupts an update, the marker continues hiding its half, until
the next update begins by undoing it. While no update runs, nothing is hidden and nothing filtered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ..passage import Passage
from ..vectors import FloatMatrix
from .rows import latest

T = TypeVar("T")


class Hidden(NamedTuple):
    """Points whose `field` (`since` or `until`) is `version` are not there for a search."""

    field: str
    version: int


class Marker(NamedTuple):
    """The collection's version, and that of the update in progress."""

    version: int
    target: int | None

    @property
    def hidden(self) -> Hidden | None:
        """What a search must not see."""
        if self.target is None:
            return None
        return Hidden("since" if self.version < self.target else "until", self.target)


class Points(Protocol):
    """What an engine must do for `Versions`; each method may be repeated without harm."""

    async def marker(self) -> Marker | None:
        """The marker, if it was ever set."""

    async def mark(self, marker: Marker) -> None:
        """Set the marker."""

    async def write(self, passages: Sequence[Passage], vectors: FloatMatrix, since: int) -> None:
        """Write a point for each passage, under an id made from the passage's and `since`."""

    async def retire(self, ids: Sequence[str], until: int) -> None:
        """Mark the points of these passages with `until`, but for those with `since` = `until`."""

    async def reinstate(self, until: int) -> None:
        """Take the mark `until` off all points."""

    async def erase(self, points: Hidden) -> None:
        """Delete these points."""


class Versions:
    """One collection's updates and searches, kept apart. One process at a time may update."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._known: Marker | None = None
        self._updating = asyncio.Lock()

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, removed: Sequence[str]) -> None:
        """Forget `removed` and keep `passages`, at once as far as `reading` can tell."""
        positions, gone = latest(passages, removed)
        kept = [passages[position] for position in positions]
        if not kept and not gone:
            return
        async with self._updating:
            before = await self._settled()
            target = before + 1
            await self._points.mark(Marker(before, target))
            await self._points.write(kept, vectors[positions], target)
            await self._points.retire([*gone, *(passage.id for passage in kept)], target)
            await self._points.mark(Marker(target, target))
            await self._points.erase(Hidden("until", target))
            await self._points.mark(Marker(target, None))

    async def reading(self, search: Callable[[Hidden | None], Awaitable[T]]) -> T:
        """What `search` returns, which is given what it must not see, for one state of the collection."""
        marker = self._known or await self._marker()
        while True:
            result = await search(marker.hidden)
            self._known = await self._marker()
            if self._known == marker:
                return result
            marker = self._known

    async def hidden(self) -> Hidden | None:
        """What is not to be seen now."""
        return (await self._marker()).hidden

    async def _settled(self) -> int:
        """The version, once the half of an update that was cut short is undone, or its rest done."""
        version, target = await self._marker()
        if target is None:
            return version
        if version < target:
            await self._points.erase(Hidden("since", target))
            await self._points.reinstate(target)
        else:
            await self._points.erase(Hidden("until", target))
        # Onwards even when it was undone: a search must see that the marker has changed.
        await self._points.mark(Marker(target, None))
        return target

    async def _marker(self) -> Marker:
        return await self._points.marker() or Marker(0, None)


def marker_payload(marker: Marker) -> dict[str, Any]:
    """The marker as the payload of a point."""
    return marker._asdict()


def marker_from(payload: dict[str, Any] | None) -> Marker | None:
    """The marker that `marker_payload` wrote."""
    return Marker(payload["version"], payload["target"]) if payload else None
