"""pysbd, which finds sentence boundaries: imported on first use, with its syntax warnings suppressed."""

import warnings
from functools import cache
from typing import Any


@cache
def segmenter(*, char_span: bool, language: str = "en") -> Any:
    """pysbd's rules for a language, or for English if it has none.

    With `char_span` it returns places in the text, else the sentences.
    """
    with warnings.catch_warnings():
        # on first compilation its patterns cause warnings on stderr, which would mix with the service's log
        warnings.filterwarnings("ignore", message=".*invalid escape sequence")
        import pysbd
        from pysbd.languages import LANGUAGE_CODES
    known = language if language in LANGUAGE_CODES else "en"
    return pysbd.Segmenter(language=known, clean=False, char_span=char_span)
