"""Citation styles, one file each, exporting one frozen `STYLE`."""

from collections.abc import Mapping

from ...discovery import by_name, exported, named
from ..citation import Style

__all__ = ["Style", "chosen", "discover_styles"]


def discover_styles(package: str = __package__) -> Mapping[str, Style]:
    """All styles by name, in the order of file names."""
    return by_name(exported(package, "STYLE", Style), "citation styles")


def chosen(name: str) -> Style:
    """The style with that name; raises `UnknownNameError`."""
    return named("citation style", name, discover_styles())
