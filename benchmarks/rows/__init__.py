"""The rows of a run, one per question and method: written, read back, summarised."""
