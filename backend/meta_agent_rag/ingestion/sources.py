"""The files of an ingestion: those found in a user's paths, what to do with each, and what became of it."""

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..errors import InputError
from .document import RefusalKind

if TYPE_CHECKING:  # the child process imports this module, and nothing slow
    from ..retrieval.corpus.catalogue import DocumentRecord

Status: TypeAlias = Literal["added", "replaced", "moved", "unchanged", "skipped", "pruned", "gone"]
"""`moved`: the same content at a new path, the old one gone. `gone`: the file is gone, the document is kept."""
_LONGEST_SLUG = 48


@dataclass(frozen=True, kw_only=True)
class FileOutcome:
    """One file. `reason` is a clause; `refusal` the kind of a parser's reason; `broken` makes it a failure."""

    source: str
    status: Status
    reason: str | None = None
    refusal: RefusalKind | None = None
    passages: int = 0
    broken: bool = False


@dataclass(frozen=True, kw_only=True)
class IngestProgress:
    """Progress: files examined, and passages encoded out of those known to need it."""

    files: int
    of_files: int
    passages: int
    of_passages: int


@dataclass(frozen=True, kw_only=True)
class IngestReport:
    """The result of an ingestion. `encoded` counts passages whose vectors had to be computed."""

    corpus: str
    outcomes: tuple[FileOutcome, ...]
    encoded: int
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether a broken file was skipped."""
        return any(outcome.broken for outcome in self.outcomes)

    @property
    def counts(self) -> Mapping[Status, int]:
        """The number of files per status."""
        return Counter(outcome.status for outcome in self.outcomes)


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A regular file. `source` is its absolute path as text; `named` is true if the user gave this exact path."""

    path: Path
    source: str
    named: bool


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """Files in order, without duplicates, and skipped paths; `folders` are the absolute paths of the given folders."""

    files: tuple[FoundFile, ...]
    passed_over: tuple[FileOutcome, ...] = ()
    folders: tuple[str, ...] = ()

    def covers(self, source: str) -> bool:
        """Whether a source is inside one of the given folders."""
        return any(source == folder or source.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.folders)


def find_files(paths: Sequence[Path], *, without: Path | None = None, gone_too: bool = False) -> SourceFiles:
    """All files in `paths`, folders recursively, in the order of names.

    Hidden files and folders are skipped unless they are given by name, and so is the folder `without`.
    Links that lead outside their folder or form a cycle are not followed. Raises `InputError` for a path
    that does not exist, unless `gone_too` is set, which treats it as an empty folder.
    """
    files: dict[str, FoundFile] = {}
    passed_over: dict[str, FileOutcome] = {}
    folders: list[str] = []
    left_out = None if without is None else os.path.realpath(without)
    for path in paths:
        real = Path(os.path.realpath(path))
        if not real.exists() and not gone_too:
            raise InputError(f"There is no file or folder {source_name(path)!r}; check the path.")
        if real.is_dir() or not real.exists():
            folders.append(source_name(real))
        for item in [_examined(real, named=True)] if real.exists() and not real.is_dir() else _below(real, left_out):
            if isinstance(item, FileOutcome):
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
    """Whether a source certainly no longer exists; an inaccessible folder is no proof."""
    try:
        return not stat.S_ISREG(os.stat(source).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False


def _below(root: Path, left_out: str | None) -> Iterator[FoundFile | FileOutcome]:
    waiting = [root]
    while waiting:  # `os.walk` is recursive in Python 3.11
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            if folder != root or root.exists():
                yield _passed_over(folder, f"it cannot be opened ({error.strerror})")
            continue
        inner: list[Path] = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path = Path(entry)
            if entry.is_dir(follow_symlinks=False):
                inner.append(path)
            else:
                yield _linked(root, path) if entry.is_symlink() else _examined(path, named=False)
        waiting += (path for path in reversed(inner) if str(path) != left_out)


def _linked(root: Path, link: Path) -> FoundFile | FileOutcome:
    """The target of a link within `root`: always a file inside `root`."""
    try:
        target = Path(os.path.realpath(link, strict=True))
    except (OSError, RuntimeError):
        return _passed_over(link, "it is a broken link")
    if not target.is_relative_to(root):
        return _passed_over(link, "it is a link to a target outside the folder")
    if target.is_dir():
        return _passed_over(link, "it is a link to a folder that is read anyway", broken=False)
    return _examined(target, named=False)


def _examined(path: Path, *, named: bool) -> FoundFile | FileOutcome:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return _passed_over(path, f"it cannot be opened ({error.strerror})")
    if not stat.S_ISREG(mode):
        return _passed_over(path, "it is not a regular file", broken=named)
    return FoundFile(path=path, source=source_name(path), named=named)


def _passed_over(path: Path | str, reason: str, *, broken: bool = True) -> FileOutcome:
    return FileOutcome(source=source_name(path), status="skipped", reason=reason, broken=broken)


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """One file with its intended `status`. `doc_id` is its document's, new or known.

    `same_as` names the source with the same content, if the file is skipped for that reason; `passages` are those
    of an unchanged document.
    """

    file: FoundFile
    status: Status
    doc_id: str = ""
    same_as: str | None = None
    passages: int = 0


@dataclass(frozen=True, kw_only=True)
class IngestPlan:
    """Steps in file order, documents whose files no longer exist, and those that became copies.

    A file is a copy only of a document that is already in the corpus: one still to be read may turn out unreadable.
    """

    steps: tuple[PlannedFile, ...]
    gone: "tuple[DocumentRecord, ...]"
    copies: "tuple[DocumentRecord, ...]"


def plan_for(found: SourceFiles, hashes: Mapping[str, str], documents: "Sequence[DocumentRecord]") -> IngestPlan:
    """The plan for the files that have a hash, by source; `documents` are those in the corpus.

    It is made before anything is read, for all files at once, because two files may have swapped their contents.
    """
    known = {document.source: document for document in documents}
    present = {file.source for file in found.files} | {passed.source for passed in found.passed_over}
    lost = [document for document in documents if document.source not in present and is_gone(document.source)]
    orphans = {document.content_hash: document for document in lost}
    owners = _owners(hashes, [document for document in documents if document not in lost])
    ids = {document.id for document in documents}
    steps: list[PlannedFile] = []
    for file in found.files:
        if file.source not in hashes:
            continue
        content, document = hashes[file.source], known.get(file.source)
        if document is not None and document.content_hash == content:
            steps.append(PlannedFile(file=file, status="unchanged", doc_id=document.id, passages=document.passages))
        elif owners[content] != file.source:
            steps.append(PlannedFile(file=file, status="skipped", same_as=owners[content]))
        elif document is not None:
            steps.append(PlannedFile(file=file, status="replaced", doc_id=document.id))
        elif content in orphans:
            steps.append(PlannedFile(file=file, status="moved", doc_id=orphans[content].id))
        else:
            steps.append(PlannedFile(file=file, status="added", doc_id=_new_id(file.path, content, ids)))
            ids.add(steps[-1].doc_id)
    taken = {step.doc_id for step in steps}
    held = {document.source for document in documents if hashes.get(document.source) in {None, document.content_hash}}
    copied = {step.file.source for step in steps if step.same_as in held}
    return IngestPlan(
        steps=tuple(steps),
        gone=tuple(document for document in lost if found.covers(document.source) and document.id not in taken),
        copies=tuple(document for source, document in known.items() if source in copied),
    )


def _owners(hashes: Mapping[str, str], documents: "Sequence[DocumentRecord]") -> dict[str, str]:
    """The source from which each content is taken: an unchanged one, one elsewhere, or else the first file."""
    owners: dict[str, str] = {}
    for document in documents:
        if hashes.get(document.source, document.content_hash) == document.content_hash:
            owners.setdefault(document.content_hash, document.source)
    for source, content in hashes.items():
        owners.setdefault(content, source)
    return owners


def _new_id(path: Path, content_hash: str, used: set[str]) -> str:
    """An id that no other document has: readable, and made from the content, so that it is the same everywhere."""
    slug = "-".join(re.findall(r"[^\W_]+", path.stem.lower()))[:_LONGEST_SLUG] or "document"
    plain = f"{slug}-{content_hash[:12]}"
    return next(id_ for id_ in chain([plain], (f"{plain}-{number}" for number in count(2))) if id_ not in used)
