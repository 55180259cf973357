"""Texts that a user can replace: the YAML files of COACH_DIR, else the package's own.

An entry of a user's file replaces the built-in entry of the same name. `files_of` sets the folder for the duration of a
block, because settings are not at hand wherever a word is looked up.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import yaml

from ..discovery import named
from ..errors import PromptError
from ..prompts import own_yaml, require_folder

_BUILT_IN = {
    "levels": "coach/levels.yaml",
    "words": "coach/words.yaml",
    "generic": "coach/generic.yaml",
    "replies": "replies.yaml",
}
"""The name of each file in COACH_DIR, and its place in the package."""
_LANGUAGES = {"en", "ja"}
"""The languages of the coach's own questions."""
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


def reply_phrase(key: str, **values: object) -> str:
    """The text of `replies.yaml` with that key, filled with values. Raises `UnknownNameError`."""
    text = named("phrase", key, rows_of("replies", folder_in_use()))
    return Template(text.strip()).safe_substitute({name: str(value) for name, value in values.items()})


@cache
def rows_of(name: str, folder: Path | None) -> Mapping[Any, Any]:
    """The entries of a file. Raises `PromptError`, which names the fault in a user's file."""
    built_in: dict[Any, Any] = yaml.safe_load(files(__package__).joinpath(_BUILT_IN[name]).read_text(encoding="utf-8"))
    own = folder / f"{name}.yaml" if folder is not None else None
    if own is None or not own.is_file():
        return built_in
    replaced = own_yaml(own)
    _check(str(own), replaced, built_in)
    return _merged(built_in, replaced)


def check_files(folder: Path | None) -> None:
    """Validate every file of the user's folder before it is needed.

    Raises `PromptError` for a missing folder, for a file or entry that replaces nothing, and for an entry whose form
    differs from the built-in one.
    """
    if folder is None:
        return
    known = ", ".join(f"{name}.yaml" for name in _BUILT_IN)
    require_folder("COACH_DIR", folder, known)
    for file in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
        if file.stem not in _BUILT_IN or file.suffix != ".yaml":
            raise PromptError(f"The file {str(file)!r} replaces none; rename it to one of: {known}.")
        rows_of(file.stem, folder)


def _check(where: str, own: object, built_in: Any) -> None:
    """Raise `PromptError` unless the user's entries have the names and form of the built-in ones."""
    if isinstance(built_in, Mapping):
        if not isinstance(own, Mapping):
            raise PromptError(f"{where} must map names to entries, as the built-in file does.")
        known = {*built_in} | (_LANGUAGES if _LANGUAGES.intersection(built_in) else set())
        for name, entry in own.items():
            if name not in known:
                choices = ", ".join(sorted(map(str, known)))
                raise PromptError(f"{where} has an unknown entry {name!r}; choose from: {choices}.")
            _check(f"{where}, entry {name!r},", entry, built_in.get(name, next(iter(built_in.values()))))
    elif type(own) is not type(built_in) or (isinstance(own, list) and not all(isinstance(one, str) for one in own)):
        form = "a list of texts" if isinstance(built_in, list) else "text" if isinstance(built_in, str) else "a number"
        raise PromptError(f"{where} must be {form}; put yes, no, on and off in quotation marks.")


def _merged(built_in: Mapping[Any, Any], own: Mapping[Any, Any]) -> dict[Any, Any]:
    inner = {
        name: _merged(built_in[name], entry)
        for name, entry in own.items()
        if isinstance(entry, Mapping) and isinstance(built_in.get(name), Mapping)
    }
    return {**built_in, **own, **inner}
