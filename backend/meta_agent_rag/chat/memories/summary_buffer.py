"""Keeps the latest exchanges verbatim and older ones in a running summary; folds only when the buffer overflows."""

from ..history import Exchange, exchange_tokens
from . import Limits, Memory, Share


def share(exchanges: tuple[Exchange, ...], limits: Limits) -> Share:
    """Fold all but the latest `limits.exchanges` once there are `limits.fold_at`, or too many tokens.

    An overflow by tokens keeps at most half of them, so that the next turn does not overflow immediately;
    the latest exchange is always kept.
    """
    too_long = exchange_tokens(exchanges) > limits.tokens
    fold_at = limits.fold_at if limits.exchanges else 1
    if len(exchanges) < fold_at and not too_long:
        return Share(kept=exchanges)
    kept = exchanges[max(len(exchanges) - limits.exchanges, 0) :]
    while too_long and len(kept) > 1 and exchange_tokens(kept) > limits.tokens // 2:
        kept = kept[1:]
    return Share(kept=kept, folded=exchanges[: len(exchanges) - len(kept)])


MEMORY = Memory(name="summary_buffer", share=share, about="the latest exchanges, and a summary of older ones")
