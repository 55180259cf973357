"""Two sides compared, question by question: what `python -m benchmarks.compare` is made of."""
