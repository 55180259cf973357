"""A run of the benchmark: its configuration, questions, evidence, rows and folder."""
