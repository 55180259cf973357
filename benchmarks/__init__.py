"""The benchmark: data sets, metrics, statistics and published figures around the one loop."""
