"""The monitor: what it measures on a draft, and the policies that judge it."""
