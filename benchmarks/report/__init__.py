"""What a run reports: `report.md` with its tables and plots, and the tables on the screen."""

from .document import markdown, write_report
from .ours import protocol
from .screen import show

__all__ = ["markdown", "protocol", "show", "write_report"]
