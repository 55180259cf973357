"""Finds extensions, one exported constant per file, built-in or third-party."""

import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Protocol, TypeVar

from .errors import DuplicateNameError, ExtensionError, InputError, MetaRagError, UnknownNameError

T = TypeVar("T")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")


class Named(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def by_name(found: Iterable[N], plural: str) -> Mapping[str, N]:
    """An immutable registry in the order of `found`; a duplicate name raises `DuplicateNameError`."""
    registry: dict[str, N] = {}
    for one in found:
        if one.name in registry:
            raise DuplicateNameError(f"Two {plural} are called {one.name!r}; rename one of them.")
        registry[one.name] = one
    return MappingProxyType(registry)


def named(kind: str, name: str, known: Mapping[str, T]) -> T:
    """The entry of a registry with that name; otherwise `UnknownNameError`, which calls it a `kind`."""
    if name not in known:
        raise UnknownNameError(kind, name, list(known))
    return known[name]


@contextmanager
def calling(kind: str, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Call an extension's function: an error that is not of this package is raised as an `ExtensionError`."""
    try:
        yield
    except MetaRagError:
        raise
    except Exception as error:
        if isinstance(error, ExceptionGroup) and error.split(MetaRagError)[1] is None:  # errors of this package alone
            first_of = error.exceptions[0]
            if isinstance(first_of, MetaRagError):
                raise first_of from error
        file = getattr(getattr(function, "__code__", None), "co_filename", None) or getattr(function, "__module__", "?")
        first = getattr(getattr(function, "__code__", None), "co_firstlineno", None)
        frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = frames[-1] if frames else first
        where = repr(file) if line is None else f"{file!r}, line {line}"
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise ExtensionError(f"The {kind} {name!r} failed in {where} ({words}); fix it or leave it out.") from error


def require_result(value: object, kind: type, *, or_none: bool = False) -> None:
    """Raise `TypeError` if an extension's function returned something else; call it within `calling`."""
    if not (isinstance(value, kind) or (or_none and value is None)):
        wanted = f"{_article(kind.__name__)}{' or None' if or_none else ''}"
        raise TypeError(f"it returned {type(value).__name__}, not {wanted}")


def require_name(kind: str, name: object, reserved: Collection[str] = ()) -> None:
    """Raise `InputError` for the name of an extension that is malformed or `reserved`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"The {kind} name {name!r} is not lower_case_with_underscores (2 to 40 characters); rename it."
        )
    if name in reserved:
        raise InputError(f"The {kind} name {name!r} is reserved, as are: {', '.join(reserved)}; choose another name.")


def require_functions(kind: str, entry: Named, *fields: str) -> None:
    """Raise `InputError` if one of an extension's fields is not a function."""
    for field in fields:
        value = getattr(entry, field)
        if not callable(value):
            raise InputError(f"The {kind} {entry.name!r} has the {field!r} {value!r}; give a function.")


def contributed(
    package: str, constant: str, kind: type[N], *, group: str, folder: Path | None, setting: str
) -> tuple[N, ...]:
    """The contributions of a package's own files, an entry point group and a folder (if given), sorted by name.

    `setting` names the folder in messages. Raises `InputError` for a file that fails. Duplicate names are left to the
    registry, which rejects them.
    """
    found = [*exported(package, constant, kind), *exported_from_entry_points(group, kind)]
    if folder is not None:
        found += exported_from_folder(folder, constant, kind, setting=setting)
    return tuple(sorted(found, key=lambda one: one.name))


def exported(package: str, constant: str, kind: type[T]) -> Iterator[T]:
    """The `constant` of every module of a package that exports one, or a tuple of them, in the order of file names."""
    folder = importlib.import_module(package).__path__
    for module in sorted(pkgutil.iter_modules(folder), key=lambda found: found.name):
        yield from _constant(importlib.import_module(f"{package}.{module.name}"), constant, kind)


def exported_from_folder(folder: Path, constant: str, kind: type[T], *, setting: str = "") -> Iterator[T]:
    """The `constant` of every `*.py` file of a folder outside any package; files named `_*.py` are not read.

    `setting` names the folder in messages. Raises `InputError` if the folder or a file cannot be read, or a file
    exports nothing or something of another type.
    """
    if not folder.is_dir():
        named_by = f"{setting} " if setting else ""
        raise InputError(
            f"{named_by}{str(folder)!r} is not a folder; give a folder with *.py files that each export {constant}."
        )
    for file in sorted(folder.glob("*.py")):
        if file.name.startswith("_"):
            continue
        module = _load(file)
        if not hasattr(module, constant):
            raise InputError(
                f"{str(file)!r} does not export {constant}; write {constant} = {kind.__name__}(...), or start the "
                "file's name with an underscore to exclude it."
            )
        yield from _constant(module, constant, kind)


def exported_from_entry_points(group: str, kind: type[T]) -> Iterator[T]:
    """The contributions of installed packages to an entry point group, sorted by name."""
    for entry in _entry_points(group, tuple(sys.path)):
        try:
            value = entry.load()
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"The entry point {entry.value!r} of {group!r} fails ({words}); uninstall it.") from error
        if not isinstance(value, kind):
            raise InputError(
                f"The entry point {entry.value!r} of {group!r} is {_article(type(value).__name__)}, not "
                f"{_article(kind.__name__)}; export one."
            )
        yield value


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """A group's entry points on `path`, sorted by name; read once, since each look takes 20 ms."""
    return tuple(sorted(entry_points(group=group), key=lambda found: found.name))


def _load(file: Path) -> ModuleType:
    name = f"_contributed_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{str(file)!r} cannot be loaded ({type(error).__name__}: {error}); fix it or move it away."
        ) from error
    return module


def _constant(module: ModuleType, constant: str, kind: type[T]) -> Iterator[T]:
    if not hasattr(module, constant):
        return
    value = getattr(module, constant)
    for one in value if type(value) is tuple else (value,):
        if not isinstance(one, kind):
            raise InputError(
                f"{constant} in {module.__file__!r} is {_article(type(one).__name__)}, not {_article(kind.__name__)}; "
                f"write {constant} = {kind.__name__}(...)."
            )
        yield one


def _article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
