"""Shared by the stores on servers: parsing a URL, and displaying it without its password."""

from urllib.parse import SplitResult, urlsplit

from ...errors import SettingsError
from .protocols import StorePlace

BATCH_SECONDS = 60
"""The time limit for one batch of an update on a server."""
SEARCH_SECONDS = 20
"""The time limit for all other requests."""


def server_url(place: StorePlace, setting: str) -> SplitResult:
    """The parts of the place's URL; raises `SettingsError` if it is missing or malformed."""
    if not place.url:
        raise SettingsError(f"No server is set for the corpus index {place.name!r}; set {setting}.")
    try:
        parts = urlsplit(place.url)
        port = parts.port
    except ValueError as error:
        raise SettingsError(f"{setting} is not a URL; write it as http://HOST:PORT.") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise SettingsError(f"{setting} is {shown_url(place.url)!r}; write it as http://HOST:PORT.")
    return parts


def shown_url(url: str) -> str:
    """The URL for a message: no user, no password, no query.

    >>> shown_url("https://elastic:secret@search.example:9200/path?key=1")
    'https://search.example:9200/path'
    """
    plain = url.partition("?")[0].partition("#")[0]
    scheme, mark, rest = plain.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
