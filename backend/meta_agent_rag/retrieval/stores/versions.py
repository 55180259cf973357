"""Atomic updates in engines that change points one request at a time.

A point has `since`, the version of the collection in which it appears, and, once it is outdated,
`until`, the version in which it disappears. A marker holds the current version V and, during an update,
its target V + 1. An update

1. sets the target, which hides points with `since` = V + 1 from searches, and writes the new points;
2. sets `until` = V + 1 on the outdated ones;
3. sets the version to V + 1, the decisive step: now points with `until` = V + 1 are hidden;
4. deletes those, and removes the target.

A search reads the marker again at its end, and restarts if it has changed; it therefore needs no lock,
and may run in another process. If an update is interrupted, the marker keeps hiding its half until
the next update begins by undoing it. Without an update in progress, nothing is hidden or filtered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ..passage import Passage
from ..vectors import FloatMatrix
from .rows import latest

T = TypeVar("T")


class Hidden(NamedTuple):
    """Points whose `field` (`since` or `until`) equals `version` are invisible to a search."""

    field: str
    version: int


class Marker(NamedTuple):
    """The collection's version, and the target of the update in progress."""

    version: int
    target: int | None

    @property
    def hidden(self) -> Hidden | None:
        """The points hidden from searches."""
        if self.target is None:
            return None
        return Hidden("since" if self.version < self.target else "until", self.target)


class Points(Protocol):
    """The engine operations for `Versions`; each must be idempotent."""

    async def marker(self) -> Marker | None:
        """The marker, if it was ever set."""

    async def mark(self, marker: Marker) -> None:
        """Set the marker."""

    async def write(self, passages: Sequence[Passage], vectors: FloatMatrix, since: int) -> None:
        """Write a point for each passage, under an id made from the passage's and `since`."""

    async def retire(self, ids: Sequence[str], until: int) -> None:
        """Mark the points of these passages with `until`, except those with `since` = `until`."""

    async def reinstate(self, until: int) -> None:
        """Remove the mark `until` from all points."""

    async def erase(self, points: Hidden) -> None:
        """Delete these points."""


class Versions:
    """Coordinates a collection's updates and searches. One process at a time may update."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._known: Marker | None = None
        self._updating = asyncio.Lock()

    async def update(self, passages: Sequence[Passage], vectors: FloatMatrix, removed: Sequence[str]) -> None:
        """Delete `removed` and store `passages`, atomically as seen by `reading`."""
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
        """The result of `search`, which receives the hidden points, for one state of the collection."""
        marker = self._known or await self._marker()
        while True:
            result = await search(marker.hidden)
            self._known = await self._marker()
            if self._known == marker:
                return result
            marker = self._known

    async def hidden(self) -> Hidden | None:
        """The points hidden now."""
        return (await self._marker()).hidden

    async def _settled(self) -> int:
        """The version, after an interrupted update has been undone or completed."""
        version, target = await self._marker()
        if target is None:
            return version
        if version < target:
            await self._points.erase(Hidden("since", target))
            await self._points.reinstate(target)
        else:
            await self._points.erase(Hidden("until", target))
        # Increased even if it was undone, because a search must notice that the marker has changed.
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
