"""The prefixes that encoders require for questions and passages."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

import yaml


def own_prompts(prompts: Mapping[str, str | None]) -> tuple[str, str]:
    """A model's own prefixes for (a question, a passage), from its named prompts; empty if it has none."""
    return prompts.get("query") or "", prompts.get("passage") or prompts.get("document") or ""


def prefixes(name: str, own_query: str, own_passage: str) -> tuple[str, str]:
    """The prefixes for (a question, a passage): the model's own prompts if it has any, else those in the table."""
    return (own_query, own_passage) if own_query or own_passage else table_prefixes(name)


def table_prefixes(name: str) -> tuple[str, str]:
    """The prefixes for (a question, a passage), by the encoder's name; empty if unknown."""
    last = Path(name).name
    return next(((query, passage) for glob, query, passage in _prefix_table() if fnmatchcase(last, glob)), ("", ""))


@cache
def _prefix_table() -> tuple[tuple[str, str, str], ...]:
    rows = yaml.safe_load(files(__package__).joinpath("prefixes.yaml").read_text("utf-8"))
    return tuple((row["name"], row["query"], row["passage"]) for row in rows)
