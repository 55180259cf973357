"""Paired comparison of two sides, question by question: the parts of `python -m benchmarks.compare`."""
