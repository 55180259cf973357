"""How citations are written, one file each: it exports one frozen `STYLE`."""

from .registry import chosen, discover_styles
from .style import Style

__all__ = ["Style", "chosen", "discover_styles"]
