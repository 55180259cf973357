"""What a run reports: `report.md` with its tables and plots, and the tables on the screen."""

from .document import of_the_packaged_model, write_report
from .published import SCORER, protocol
from .screen import show

__all__ = ["SCORER", "of_the_packaged_model", "protocol", "show", "write_report"]
