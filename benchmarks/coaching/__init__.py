"""What `python -m benchmarks.socratic` measures: replies, hooks, scope and time on the sample course."""
