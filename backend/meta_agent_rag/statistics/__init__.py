"""Statistics of answers, for the benchmark and the demo."""
