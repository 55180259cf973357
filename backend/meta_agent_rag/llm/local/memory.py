"""How much memory this machine has."""

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux states the limit of a container."""


def machine_memory() -> int | None:
    """Bytes of memory, or the limit of the container if that is lower; `None` if the system does not tell.

    All of it, and not what is free: the same model should be chosen in an hour.
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has none of this
        return None
    limits = [whole]
    for place in _LIMITS:
        with suppress(OSError, ValueError):  # none of the kind, or "max"
            limits.append(int(Path(place).read_text(encoding="ascii")))
    return min(limits)
