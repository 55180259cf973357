"""Methods that a benchmark compares; a file of this folder, or of METHODS_DIR, that exports `METHOD` is one."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from meta_agent_rag.discovery import by_name, contributed
from meta_agent_rag.errors import InputError, UnknownNameError

from .method import Method, MethodTask

__all__ = ["Method", "MethodTask", "discover_methods", "named"]

ENTRY_POINT_GROUP = "meta_agent_rag.methods"


def discover_methods(folder: Path | None = None) -> Mapping[str, Method]:
    """The built-in methods, those of installed packages, and those of `folder` (METHODS_DIR), by name."""
    found = contributed(__package__, "METHOD", Method, group=ENTRY_POINT_GROUP, folder=folder, setting="METHODS_DIR")
    return by_name(found, "methods")


def named(names: str, folder: Path | None = None) -> tuple[Method, ...]:
    """The methods of a comma-separated list, or of `all`, with those of `folder`; raises `UnknownNameError`."""
    known = discover_methods(folder)
    wanted: Sequence[str] = list(known) if names.strip() == "all" else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise UnknownNameError("method", name, ["all", *known])
    if len(set(wanted)) < len(wanted):
        raise InputError(f"--method {names!r} repeats a method; name each once.")
    return tuple(known[name] for name in wanted)
