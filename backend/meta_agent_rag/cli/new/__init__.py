"""`marag new KIND NAME`: creates a working example of a kind for the user to adapt."""

from .command import register

__all__ = ["register"]
