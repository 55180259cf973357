"""Sliding windows in memory that go by a clock which nobody sets."""

import time
from collections import defaultdict, deque

from limits.aio.storage import MemoryStorage


class MonotonicWindows(MemoryStorage):
    """The library's storage in memory, but for its clock: a wall clock set back by an hour would bar keys for one."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: defaultdict[str, deque[float]] = defaultdict(deque)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Enter `amount` into the window of `expiry` seconds, if there is room for them."""
        entries = self._within(key, expiry)
        if len(entries) + amount > limit:
            return False
        entries.extend([time.monotonic()] * amount)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest entry was made, by today's wall clock, and how many there are."""
        entries, now = self._within(key, expiry), time.monotonic()
        return time.time() - (now - entries[0] if entries else 0.0), len(entries)

    def _within(self, key: str, expiry: int) -> deque[float]:
        entries, begun = self._entries[key], time.monotonic() - expiry
        while entries and entries[0] < begun:
            entries.popleft()
        return entries
