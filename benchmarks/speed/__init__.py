"""Measurements of the package itself: `python -m benchmarks.speed NAME`."""
