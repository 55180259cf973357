"""Hooks of the coach, one file each; a file that exports `PRE_HOOK` or `POST_HOOK` is discovered automatically."""

from collections.abc import Iterable
from functools import cache
from typing import TypeVar

from ....discovery import by_name, exported
from ..hook import Hooks, PostHook, PreHook

AnyHook = TypeVar("AnyHook", bound=PreHook | PostHook)

__all__ = ["discover_hooks", "in_order"]


@cache
def discover_hooks() -> Hooks:
    """Every hook of this folder, each kind ordered by priority. Raises `DuplicateNameError`."""
    before = in_order(exported(__name__, "PRE_HOOK", PreHook))  # type: ignore[type-abstract]
    after = in_order(exported(__name__, "POST_HOOK", PostHook))  # type: ignore[type-abstract]
    every: list[PreHook | PostHook] = [*before, *after]
    in_order(every)  # names are unique across both kinds
    return Hooks(before=before, after=after)


def in_order(hooks: Iterable[AnyHook]) -> tuple[AnyHook, ...]:
    """The hooks by ascending priority, then by name; a duplicate name raises `DuplicateNameError`."""
    return tuple(sorted(by_name(hooks, "hooks").values(), key=lambda hook: (hook.priority, hook.name)))
