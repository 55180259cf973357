"""The memory of this machine."""

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux states a container's limit."""


def machine_memory() -> int | None:
    """Bytes of memory, or the container's limit if that is lower; `None` if unknown.

    Total memory, not free memory: the choice of the model should not change from hour to hour.
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return None
    limits = [whole]
    for place in _LIMITS:
        with suppress(OSError, ValueError):  # missing, or "max"
            limits.append(int(Path(place).read_text(encoding="ascii")))
    return min(limits)
