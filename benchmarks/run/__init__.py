"""A run of the benchmark: its configuration, the questions, evidence and rows of it, and its folder."""
