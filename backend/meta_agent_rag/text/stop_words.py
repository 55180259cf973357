"""The function words that are removed from search queries."""

from functools import cache
from importlib.resources import files

import yaml


@cache
def stop_words() -> tuple[str, ...]:
    """English function words, in lower case, from `stopwords.yaml`."""
    rows = yaml.safe_load(files(__package__).joinpath("stopwords.yaml").read_text("utf-8"))
    return tuple(word for row in rows for word in row)
