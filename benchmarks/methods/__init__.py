"""Methods that a benchmark compares; a file of this folder that exports `METHOD` is one."""

from collections.abc import Mapping, Sequence

from meta_agent_rag.discovery import exported
from meta_agent_rag.errors import DuplicateNameError, InputError, UnknownNameError

from .method import Method, MethodTask

__all__ = ["Method", "MethodTask", "discover_methods", "named"]


def discover_methods(package: str = __package__) -> Mapping[str, Method]:
    """All methods by name, in the order of file names."""
    methods: dict[str, Method] = {}
    for method in exported(package, "METHOD", Method):
        if method.name in methods:
            raise DuplicateNameError(f"Two methods are named {method.name!r}; rename one of them.")
        methods[method.name] = method
    return methods


def named(names: str) -> tuple[Method, ...]:
    """The methods of a comma-separated list, or of `all`; raises `UnknownNameError`."""
    known = discover_methods()
    wanted: Sequence[str] = list(known) if names.strip() == "all" else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise UnknownNameError("method", name, ["all", *known])
    if len(set(wanted)) < len(wanted):
        raise InputError(f"--method {names!r} repeats a method; name each once.")
    return tuple(known[name] for name in wanted)
