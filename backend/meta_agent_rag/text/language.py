"""Detects the language of a text."""

from functools import cache, lru_cache
from typing import Any

LANGUAGES = (
    *("en", "de", "fr", "es", "it", "pt", "nl", "da", "no", "sv", "fi", "pl", "cs", "hu", "ro", "ru", "uk", "el"),
    *("tr", "ar", "he", "ja", "ko", "zh", "th"),
)
"""ISO 639-1 codes of the languages that are detected, and whose dates and units are supported."""


@lru_cache(maxsize=1024)
def language_of(text: str) -> str:
    """The code in `LANGUAGES` of the most likely language of a text; English for one without letters.

    >>> language_of("Die Mauer ist 180 Meter lang."), language_of("The wall is high.")
    ('de', 'en')
    """
    if not any(character.isalpha() for character in text):
        return "en"
    return str(_identifier().classify(text)[0])


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    return identifier
