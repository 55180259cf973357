"""Word files that a user can replace: those in COACH_DIR, else the package's own.

A user's entry replaces the built-in entry of the same name; missing entries keep the built-in values. The folder
is set for the duration of a call (`files_of`), because settings are not available where single words are looked up.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

import yaml

from ..errors import PromptError
from ..prompts import own_yaml, require_folder

_BUILT_IN = {
    "levels": "coach/levels.yaml",
    "words": "coach/phrases.yaml",
    "meanings": "coach/meanings.yaml",
    "generic": "coach/generic.yaml",
    "replies": "phrases.yaml",
}
"""The name of each file in COACH_DIR, and its place in the package."""
_LANGUAGES = {"en", "ja"}
"""The languages that the coach distinguishes; an entry may have texts for either."""
_FOLDER: ContextVar[Path | None] = ContextVar("folder of one's own files", default=None)


@contextmanager
def files_of(folder: Path | None) -> Iterator[None]:
    """Until the end of the block, look for the user's own files in this folder."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def folder_in_use() -> Path | None:
    """The folder set by `files_of`."""
    return _FOLDER.get()


@cache
def rows_of(name: str, folder: Path | None) -> Mapping[Any, Any]:
    """The entries of a file. Raises `PromptError`, which names the fault in a user's file."""
    built_in: dict[Any, Any] = yaml.safe_load(files(__package__).joinpath(_BUILT_IN[name]).read_text(encoding="utf-8"))
    own = folder / f"{name}.yaml" if folder is not None else None
    if own is None or not own.is_file():
        return MappingProxyType(built_in)
    replaced = own_yaml(own)
    _check(str(own), replaced, built_in)
    return MappingProxyType(_merged(built_in, replaced))


def check_files(folder: Path | None) -> None:
    """Validate every file of the user's folder before it is needed.

    Raises `PromptError` for a missing folder, a file or an entry that replaces nothing, and an entry whose form
    differs from the built-in one.
    """
    if folder is None:
        return
    require_folder("COACH_DIR", folder, _listed(_BUILT_IN))
    for file in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        if file.stem not in _BUILT_IN or file.suffix != ".yaml":
            raise PromptError(f"The file {str(file)!r} replaces none; rename it to one of: {_listed(_BUILT_IN)}.")
        rows_of(file.stem, folder)


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(f"{name}.yaml" for name in names)


def _check(where: str, own: object, built_in: Any) -> None:
    """Do the user's entries have the names and form of the built-in ones? Lists may be longer or shorter, not empty."""
    if isinstance(built_in, Mapping):
        if not isinstance(own, Mapping):
            raise PromptError(f"{where} must map names to entries, as the built-in file does.")
        names = {*built_in} | _LANGUAGES if set(built_in) <= _LANGUAGES else {*built_in}
        for name, entry in own.items():
            if name not in names:
                known = ", ".join(sorted(map(str, names)))
                raise PromptError(f"{where} has an unknown entry {name!r}; choose from: {known}.")
            _check(f"{where}, entry {name!r},", entry, built_in[name] if name in built_in else built_in["en"])
        return
    if type(own) is not type(built_in):
        raise PromptError(f"{where} must be a {_form(built_in)}, as the built-in one is, not a {_form(own)}.")
    if isinstance(own, list):
        _check_list(where, own, may_be_empty=not built_in)
    elif isinstance(own, int) and own < 1:
        raise PromptError(f"{where} must be at least 1, not {own}.")
    elif isinstance(own, str) and (strange := sorted({*_placeholders(own)} - {*_placeholders(built_in)})):
        known = ", ".join(f"${name}" for name in _placeholders(built_in)) or "none"
        raise PromptError(f"{where} uses the unknown placeholder ${strange[0]}; known ones: {known}.")


def _check_list(where: str, own: list[object], *, may_be_empty: bool) -> None:
    if not own and not may_be_empty:
        raise PromptError(f"{where} is an empty list; leave the entry out to keep the built-in one.")
    for item in own:
        texts = item if isinstance(item, list) else [item]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise PromptError(f"{where} has the item {item!r}, which is not text; put yes, no, on and off in quotes.")


def _placeholders(text: object) -> list[str]:
    return [name for name in Template(str(text)).get_identifiers() if name]


def _merged(built_in: dict[Any, Any], own: Mapping[Any, Any]) -> dict[Any, Any]:
    inner = {
        name: _merged(built_in[name], entry)
        for name, entry in own.items()
        if isinstance(entry, Mapping) and isinstance(built_in.get(name), dict)
    }
    return {**built_in, **own, **inner}


def _form(value: object) -> str:
    return {list: "list", str: "text", int: "whole number", dict: "map"}.get(type(value), "value of that kind")
