"""A run: its configuration, its questions, how they are answered, and the folder that it leaves."""

DEFAULT_N = 50
"""Questions drawn if `--n` is not given."""
DEFAULT_FAILURE_SHARE = 0.1
"""Share of a row's answers that may fail before the run stops."""
