"""Methods that a benchmark compares; a file of this folder that exports `METHOD` is one."""

from .method import Method, MethodTask
from .registry import discover_methods, named

__all__ = ["Method", "MethodTask", "discover_methods", "named"]
