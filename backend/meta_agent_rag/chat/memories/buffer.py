"""Keeps the latest exchanges verbatim and drops older ones; never calls a model."""

from ..history import Exchange, exchange_tokens
from . import Limits, Memory, Share


def share(exchanges: tuple[Exchange, ...], limits: Limits) -> Share:
    """Keep at most the latest `limits.fold_at` exchanges that fit into `limits.tokens`, but at least the latest."""
    kept = exchanges[-limits.fold_at :]
    while len(kept) > 1 and exchange_tokens(kept) > limits.tokens:
        kept = kept[1:]
    return Share(kept=kept, dropped=exchanges[: len(exchanges) - len(kept)])


MEMORY = Memory(name="buffer", share=share, about="the latest exchanges")
