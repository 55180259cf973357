"""Sliding windows in memory, based on a monotonic clock."""

import time
from collections import defaultdict, deque

from limits.aio.storage import MemoryStorage


class MonotonicWindows(MemoryStorage):
    """The library's in-memory storage with another clock: with a wall clock set back an hour, keys would be blocked."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: defaultdict[str, deque[float]] = defaultdict(deque)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add `amount` entries to the window of `expiry` seconds, if it has room."""
        entries = self._within(key, expiry)
        if len(entries) + amount > limit:
            return False
        entries.extend([time.monotonic()] * amount)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """The wall-clock time of the oldest entry, and the number of entries."""
        entries, now = self._within(key, expiry), time.monotonic()
        return time.time() - (now - entries[0] if entries else 0.0), len(entries)

    def _within(self, key: str, expiry: int) -> deque[float]:
        entries, begun = self._entries[key], time.monotonic() - expiry
        while entries and entries[0] < begun:
            entries.popleft()
        return entries
