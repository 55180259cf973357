"""What a citation style is."""

from collections.abc import Callable
from dataclasses import dataclass

from ..citation import Citation


@dataclass(frozen=True, kw_only=True)
class Style:
    """A way to write a citation into an answer.

    `written` makes the text that takes the mark's place; citations that it writes alike are written once.
    """

    name: str
    description: str
    written: Callable[[Citation], str]
