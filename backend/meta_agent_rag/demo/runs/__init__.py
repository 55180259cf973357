"""The display of benchmark runs: files, filter, replay, HTML."""
