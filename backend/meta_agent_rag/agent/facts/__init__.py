"""The monitor and the diagnosis by facts: what the vote elected, what is still open, and what repairs it."""
