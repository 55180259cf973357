"""Writes `.env.example` from the settings themselves, so that it cannot drift."""

from ...settings import described

_HEAD = """\
# Settings of Meta-Agent-RAG. Copy this file to .env and uncomment what you need; everything is optional.
# Precedence: command line (--set NAME=VALUE) > environment > .env > default.
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
    """No default of its own, or one that depends on the machine."""
    return default is None or default == {}


def _written(default: object) -> object:
    """A default as the environment writes it: the names of a list are separated by commas."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else default
