"""The files in a user's paths, and the skipped ones with reasons."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A regular file. `source` is its absolute path as text; `named` is true if the user gave this exact path."""

    path: Path
    source: str
    named: bool


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """A skipped path. `broken` distinguishes a fault from a deliberate omission."""

    source: str
    reason: str
    broken: bool


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """Files in order, without duplicates; `folders` are the absolute paths of the given folders."""

    files: tuple[FoundFile, ...]
    passed_over: tuple[PassedOver, ...]
    folders: tuple[str, ...]

    def covers(self, source: str) -> bool:
        """Is a source inside one of the given folders?"""
        return any(source == folder or source.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.folders)


def find_files(paths: Sequence[Path], *, without: Path | None = None, gone_too: bool = False) -> SourceFiles:
    """All files in `paths`, folders recursively, in the order of names.

    Hidden files and folders are skipped unless they are given by name, and so is the folder `without`.
    Links that lead outside their folder or form a cycle are not followed. Raises `InputError` for a path
    that does not exist, unless `gone_too` is set, which treats it as an empty folder.
    """
    files: dict[str, FoundFile] = {}
    passed_over: dict[str, PassedOver] = {}
    folders: list[str] = []
    left_out = None if without is None else os.path.realpath(without)
    for path in paths:
        real = Path(os.path.realpath(path))
        if not real.exists() and gone_too:
            folders.append(source_name(real))
            continue
        if not real.exists():
            raise InputError(f"There is no file or folder {source_name(path)!r}; check the path.")
        if real.is_dir():
            folders.append(source_name(real))
        for item in _below(real, left_out) if real.is_dir() else [_looked_at(real, named=True)]:
            if isinstance(item, PassedOver):
                passed_over.setdefault(item.source, item)
            elif left_out is None or not item.path.is_relative_to(left_out):
                files.setdefault(item.source, item)
    return SourceFiles(files=tuple(files.values()), passed_over=tuple(passed_over.values()), folders=tuple(folders))


def source_name(path: Path | str) -> str:
    """A path as text; bytes that are not UTF-8 are shown as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises `OSError`."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_gone(source: str) -> bool:
    """Does a source certainly no longer exist? An inaccessible folder is no proof."""
    try:
        return not stat.S_ISREG(os.stat(source).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False


def _below(root: Path, left_out: str | None) -> Iterator[FoundFile | PassedOver]:
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield PassedOver(source=source_name(folder), reason=f"it cannot be opened ({error.strerror})", broken=True)
            continue
        visible = [entry for entry in entries if not entry.name.startswith(".")]
        inner = [Path(entry) for entry in visible if entry.is_dir(follow_symlinks=False)]
        waiting.extend(path for path in reversed(inner) if str(path) != left_out)
        yield from _listed(root, (Path(entry) for entry in visible if not entry.is_dir(follow_symlinks=False)))


def _listed(root: Path, paths: Iterable[Path]) -> Iterator[FoundFile | PassedOver]:
    for path in paths:
        yield _linked(root, path) if path.is_symlink() else _looked_at(path, named=False)


def _linked(root: Path, link: Path) -> FoundFile | PassedOver:
    """The target of a link within `root`: always a file inside `root`."""
    source = source_name(link)
    try:
        target = Path(os.path.realpath(link, strict=True))
    except (OSError, RuntimeError):
        return PassedOver(source=source, reason="it is a broken link", broken=True)
    if not target.is_relative_to(root):
        return PassedOver(source=source, reason="it is a link to a target outside the folder", broken=True)
    if target.is_dir():
        return PassedOver(source=source, reason="it is a link to a folder that is read anyway", broken=False)
    return _looked_at(target, named=False)


def _looked_at(path: Path, *, named: bool) -> FoundFile | PassedOver:
    source = source_name(path)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return PassedOver(source=source, reason=f"it cannot be opened ({error.strerror})", broken=True)
    if not stat.S_ISREG(mode):
        return PassedOver(source=source, reason="it is not a regular file", broken=named)
    return FoundFile(path=path, source=source, named=named)
