"""What a run reports: `report.md` with its tables and plots, and the tables on the screen."""
