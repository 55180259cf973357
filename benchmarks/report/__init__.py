"""What a run reports: `report.md` with its tables and plots, and the tables on the screen."""

from .document import markdown, write_report
from .headline import of_the_packaged_model
from .ours import protocol
from .screen import show

__all__ = ["markdown", "of_the_packaged_model", "protocol", "show", "write_report"]
