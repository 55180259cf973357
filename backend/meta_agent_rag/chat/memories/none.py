"""No memory: every question stands alone."""

from ..history import Exchange
from . import Limits, Memory, Share


def share(exchanges: tuple[Exchange, ...], limits: Limits) -> Share:
    """Keep nothing."""
    return Share(kept=(), dropped=exchanges)


MEMORY = Memory(name="none", share=share, about="nothing")
