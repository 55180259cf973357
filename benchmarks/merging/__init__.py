"""Merging the shards of a run: consistency checks, run folders, and records."""
