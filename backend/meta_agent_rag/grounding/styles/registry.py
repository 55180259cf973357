"""The styles that this folder holds."""

from collections.abc import Mapping

from ...discovery import exported
from ...errors import DuplicateNameError, UnknownNameError
from .style import Style


def discover_styles(package: str = __package__) -> Mapping[str, Style]:
    """All styles by name, in the order of file names."""
    styles: dict[str, Style] = {}
    for style in exported(package, "STYLE", Style):
        if style.name in styles:
            raise DuplicateNameError(f"Two citation styles are named {style.name!r}; rename one of them.")
        styles[style.name] = style
    return styles


def chosen(name: str) -> Style:
    """The style of that name; raises `UnknownNameError`."""
    styles = discover_styles()
    if name not in styles:
        raise UnknownNameError("citation style", name, list(styles))
    return styles[name]
