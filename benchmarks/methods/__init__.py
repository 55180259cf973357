"""Methods that a benchmark compares; a file of this folder that exports `METHOD` is one."""

from .method import Method, Task
from .registry import discover_methods, named

__all__ = ["Method", "Task", "discover_methods", "named"]
