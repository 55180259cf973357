"""Creates a new member: checks its name, writes its files, generates the documents."""

import importlib
import keyword
import pkgutil
import re
import runpy
import shlex
from collections.abc import Collection, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path
from string import Template as Text
from typing import Any

from ...discovery import FORMER_STAGES, Named
from ...errors import InputError
from ...prompts import prompt_names
from ...settings import Settings
from ...shipped import clone
from ..shared.command import benchmark_package
from .template import Place, Template, template_of

_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_IMPORTS = re.compile(r"(?:^from \S+ import .*\n)+", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Created:
    """The files that were written or updated, and the next step in one line."""

    files: tuple[str, ...]
    next: str


def create(kind: str, name: str, settings: Settings) -> Created:
    """Write the files of a new member of a kind; in a clone, also generate the documents.

    Raises `UnknownNameError`, and `InputError` for a name that is malformed or taken, or a folder that is not
    writable.
    """
    template = template_of(kind)
    _check_name(name)
    set_folder: Path | None = getattr(settings, template.setting)
    root = clone() if set_folder is None else None
    place, base = (template.own, Path()) if root is None else (template.tree, root)
    folder = set_folder or Path(f"my_{template.setting.removesuffix('_dir')}")
    package, beside = benchmark_package()
    on_path = f" -o pythonpath={shlex.quote(str(beside))}" if beside else ""
    words = {"name": name, "folder": str(folder), "benchmarks": package, "on_path": on_path}
    members = _members(template, words, folder if root is None and folder.is_dir() else None)
    if name in {member.name for member in members}:
        raise InputError(f"Another {kind} is already named {name!r}; choose a different name.")
    _check_reserved(template, name)
    words |= {field: str(_free(field, first, members)) for field, first in template.unique.items()}
    texts = {base / path: text for path, text in _filled(template, place, words).items()}
    _write(texts, setting=template.setting.upper())
    shown = [str(path.relative_to(base) if path.is_relative_to(base) else path) for path in texts]
    if root is not None:
        shown += _generated(root)
    following = Text(place.next).substitute(words, folder=shlex.quote(str(folder)))
    return Created(files=tuple(shown), next=following)


def _check_name(name: str) -> None:
    if not name.isidentifier():
        raise InputError(f"{name!r} is not a Python identifier; use lower-case letters, digits and underscores.")
    if keyword.iskeyword(name):
        raise InputError(f"{name!r} is a Python keyword; choose a different name.")
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a name of 2 to 40 lower-case letters, digits and underscores that starts with a letter; "
            "write it as in 'two_words'."
        )


def _members(template: Template, words: Mapping[str, str], folder: Path | None) -> tuple[Named, ...]:
    discover: Any = pkgutil.resolve_name(Text(template.members).substitute(words))
    found: Mapping[str, Named] | Iterable[Named] = discover(folder)
    return tuple(found.values() if isinstance(found, Mapping) else found)


def _check_reserved(template: Template, name: str) -> None:
    reserved: Collection[str] = () if template.reserved is None else pkgutil.resolve_name(template.reserved)
    if name in reserved:
        raise InputError(f"The name {name!r} is reserved, as are: {', '.join(reserved)}; choose a different name.")


def _free(field: str, first: int, members: Iterable[Named]) -> int:
    """The first value of a field that no member has."""
    taken = {getattr(member, field) for member in members}
    return next(value for value in count(first) if value not in taken)


def _filled(template: Template, place: Place, words: Mapping[str, str]) -> dict[str, str]:
    """The text of each file by its path. Raises `InputError` for an existing prompt."""
    own = {key: Text(text).substitute(words) for key, text in place.words.items()}
    paths = {Text(path).substitute(words): text for path, text in place.files.items()}
    prompts = {Path(path).stem for path in paths if path.endswith(".yaml")}
    if taken := prompts & {*prompt_names(), *FORMER_STAGES}:
        raise InputError(f"A prompt is already named {taken.pop()!r}; choose a different name.")
    filled = {path: Text(template.texts[text]).substitute(words, **own) for path, text in paths.items()}
    return {path: _IMPORTS.sub(_in_order, text) for path, text in filled.items()}


def _in_order(imports: re.Match[str]) -> str:
    """Imports sorted by module, since those of a place are inserted anywhere."""
    return "".join(sorted(imports[0].splitlines(keepends=True), key=lambda line: line.split()[1]))


def _write(texts: Mapping[Path, str], *, setting: str) -> None:
    """Write all files, or none."""
    if existing := next((path for path in texts if path.exists()), None):
        raise InputError(f"The file {str(existing)!r} already exists; choose a different name.")
    written: list[Path] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink()
        raise InputError(
            f"{error.filename!r} cannot be written ({error.strerror}); "
            f"check its permissions, or set {setting} to another folder."
        ) from None


def _generated(root: Path) -> list[str]:
    """Update the documents generated from code; returns the files that changed."""
    script = root / "docs" / "generate.py"
    importlib.invalidate_caches()  # modules have been written since the last import
    with redirect_stdout(StringIO()) as said:
        try:
            runpy.run_path(str(script))["main"]([])
        except Exception as error:
            raise InputError(
                f"The files were written, but {script.name} failed ({type(error).__name__}: {error}); "
                "fix that, then run `uv run python docs/generate.py`."
            ) from error
    return [line.removeprefix("written: ") for line in said.getvalue().splitlines()]
