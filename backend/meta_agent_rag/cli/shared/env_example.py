"""Generates `.env.example` from the settings, so that it cannot become outdated."""

from .choices import described

_HEAD = """\
# Settings of Meta-Agent-RAG. Copy this file to .env and uncomment what you need; everything is optional.
# Precedence: command line (--set NAME=VALUE) > environment > .env > default. An empty value means the default.
# Written by `marag config example`.
"""


def env_example() -> str:
    """The text of `.env.example`."""
    entries = [
        f"# {description}\n# {name}={'' if _is_open(default) else _written(default)}\n"
        for name, description, default in described()
    ]
    return "\n".join([_HEAD, *entries])


def _is_open(default: object) -> bool:
    """Has the setting no default, or one that depends on the machine?"""
    return default is None or default == {}


def _written(default: object) -> object:
    """A default in environment syntax: the names of a list are separated by commas."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else default
