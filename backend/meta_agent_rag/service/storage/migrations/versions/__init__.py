"""The migration steps; each names its predecessor."""
