"""pysbd, which tells where a sentence ends: imported with its first use, and without a word on its own source."""

import warnings
from functools import cache
from typing import Any


@cache
def segmenter(*, char_span: bool, language: str = "en") -> Any:
    """pysbd's rules for a language, or for English if it has none of its own.

    With `char_span` it gives places in the text, else the sentences themselves.
    """
    with warnings.catch_warnings():
        # compiled for the first time, its patterns would be warned of on stderr, among the lines of the service's log
        warnings.filterwarnings("ignore", message=".*invalid escape sequence")
        import pysbd
        from pysbd.languages import LANGUAGE_CODES
    known = language if language in LANGUAGE_CODES else "en"
    return pysbd.Segmenter(language=known, clean=False, char_span=char_span)
