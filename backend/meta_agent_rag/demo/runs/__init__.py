"""Benchmark runs as a viewer looks at them: files, filter, replay, HTML."""
