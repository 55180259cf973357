"""Reasons why a passage cannot support a claim, one file each: a file that exports `VETO` is found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from ...discovery import by_name, exported
from ..support.grounds import Grounds


@dataclass(frozen=True, kw_only=True)
class Veto:
    """A fault by name; `fault` says in a few words why the grounds do not support the claim, or `None`.

    A veto that is not `always` checked compares the claim's words with those of the passage: it applies only to a claim
    that consists almost entirely of them, and to no derived figure.
    """

    name: str
    fault: Callable[[Grounds], str | None]
    always: bool = False


@cache
def discover_vetoes() -> Mapping[str, Veto]:
    """Every veto of this folder, by name. Raises `DuplicateNameError`."""
    return by_name(exported(__name__, "VETO", Veto), "vetoes")


def fault(grounds: Grounds) -> str | None:
    """The first fault that a veto finds, in order of names."""
    comparable = grounds.nearly_copied and not grounds.follows
    looked_for = [veto for _, veto in sorted(discover_vetoes().items()) if veto.always or comparable]
    return next((found for veto in looked_for if (found := veto.fault(grounds)) is not None), None)
