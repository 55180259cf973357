"""The latest exchanges verbatim and nothing of older ones; never calls a model."""

from ..history import Exchange, exchange_tokens
from . import Limits, Memory, Share


def share(exchanges: tuple[Exchange, ...], limits: Limits) -> Share:
    """Keep the latest `limits.fold_at` exchanges at most, as many as fit into `limits.tokens`; the latest always."""
    kept = exchanges[-limits.fold_at :]
    while len(kept) > 1 and exchange_tokens(kept) > limits.tokens:
        kept = kept[1:]
    return Share(kept=kept, dropped=exchanges[: len(exchanges) - len(kept)])


MEMORY = Memory(name="buffer", share=share)
