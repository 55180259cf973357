"""`marag new KIND NAME`: a working example of a kind, to be changed into one's own."""

from .command import register

__all__ = ["register"]
