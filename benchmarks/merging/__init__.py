"""Shards of one run put together again: what must hold between them, run folders, and records."""
