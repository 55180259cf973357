"""Access control: keys, wrong keys, rate limits, and daily cost caps."""
