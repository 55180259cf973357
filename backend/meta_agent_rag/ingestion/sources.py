"""The files of an ingestion: those found in a user's paths, what to do with each, and what became of it."""

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Literal, TypeAlias

from ..errors import InputError
from ..retrieval.corpus.catalogue import DocumentRecord
from .document import RefusalKind

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
    """Files in order, without duplicates, and skipped paths; `paths` are the absolute paths that were given."""

    files: tuple[FoundFile, ...]
    passed_over: tuple[FileOutcome, ...] = ()
    paths: tuple[str, ...] = ()


def find_files(paths: Sequence[Path], *, without: Path, known: Collection[str] = ()) -> SourceFiles:
    """All files in `paths`, folders recursively, in the order of names.

    Hidden files and folders are skipped unless they are given by name, and so is the folder `without`. Links that lead
    outside their folder, and links to folders, are not followed. Raises `InputError` for a path that does not exist,
    unless a `known` source was there.
    """
    found: dict[str, FoundFile | FileOutcome] = {}
    given: list[str] = []
    for path in paths:
        real = Path(os.path.realpath(path))
        given.append(source_name(real))
        if not real.exists() and not any(is_within(source, given[-1]) for source in known):
            raise InputError(f"There is no file or folder {source_name(path)!r}; check the path.")
        below = _below(real, os.path.realpath(without)) if real.is_dir() else [_examined(real)] if real.exists() else ()
        for item in below:
            found.setdefault(item.source, item)
    return SourceFiles(
        files=tuple(item for item in found.values() if isinstance(item, FoundFile)),
        passed_over=tuple(item for item in found.values() if isinstance(item, FileOutcome)),
        paths=tuple(given),
    )


def _below(root: Path, without: str) -> Iterator[FoundFile | FileOutcome]:
    faults: list[OSError] = []
    for folder, inner, names in os.walk(root, onerror=faults.append):
        inner[:] = sorted(one for one in inner if not one.startswith(".") and os.path.join(folder, one) != without)
        for name in sorted(names):
            if not name.startswith("."):
                yield _examined(Path(folder, name), root)
    yield from (_passed_over(fault.filename, f"it cannot be opened ({fault.strerror})") for fault in faults)


def _examined(path: Path, root: Path | None = None) -> FoundFile | FileOutcome:
    """The file at a path, or the target of a link, which must be inside `root`."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except OSError as error:
        return _passed_over(path, f"it cannot be opened ({error.strerror})")
    if root is not None and not real.is_relative_to(root):
        return _passed_over(path, "it is a link to a target outside the folder")
    if not stat.S_ISREG(mode):
        return _passed_over(path, "it is not a regular file", broken=root is None)
    return FoundFile(path=real, source=source_name(real), named=root is None)


def _passed_over(path: Path | str, reason: str, *, broken: bool = True) -> FileOutcome:
    return FileOutcome(source=source_name(path), status="skipped", reason=reason, broken=broken)


def source_name(path: Path | str) -> str:
    """A path as text; bytes that are not UTF-8 are shown as `\\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_within(source: str, path: str) -> bool:
    """Whether a source is a path, or inside it."""
    return source == path or source.startswith(path.rstrip(os.sep) + os.sep)


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


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """One file with its intended `status`. `doc_id` is its document's, new or known; empty if it will have none.

    `same_as` names the source with the same content, if the file is skipped for that reason; `passages` are those
    of an unchanged document.
    """

    file: FoundFile
    status: Status
    doc_id: str = ""
    same_as: str | None = None
    passages: int = 0


def plan_for(
    found: SourceFiles, hashes: Mapping[str, str], documents: Sequence[DocumentRecord]
) -> tuple[list[PlannedFile], list[DocumentRecord]]:
    """What to do with the files that have a hash, by source, and the documents whose files are gone.

    It is decided before anything is read, for all files at once, because two files may have swapped their contents.
    """
    present = {file.source for file in found.files} | {passed.source for passed in found.passed_over}
    lost = [document for document in documents if document.source not in present and is_gone(document.source)]
    orphans = {document.content_hash: document for document in lost}
    known = {document.source: document for document in documents}
    owners: dict[str, str] = {}  # the source of each content: a document as it was, else the first file
    for document in documents:
        if document not in lost and hashes.get(document.source, document.content_hash) == document.content_hash:
            owners.setdefault(document.content_hash, document.source)
    ids = {document.id for document in documents}
    steps: list[PlannedFile] = []
    for file in found.files:
        if (content := hashes.get(file.source)) is None:
            continue
        own, owner = known.get(file.source), owners.setdefault(content, file.source)
        if own is not None and own.content_hash == content:
            step = PlannedFile(file=file, status="unchanged", doc_id=own.id, passages=own.passages)
        elif owner != file.source:
            step = PlannedFile(file=file, status="skipped", same_as=owner, doc_id=own.id if own else "")
        elif own is not None:
            step = PlannedFile(file=file, status="replaced", doc_id=own.id)
        elif content in orphans:
            step = PlannedFile(file=file, status="moved", doc_id=orphans[content].id)
        else:
            step = PlannedFile(file=file, status="added", doc_id=_new_id(file.path, content, ids))
        ids.add(step.doc_id)
        steps.append(step)
    taken = {step.doc_id for step in steps}
    gone = (document for document in lost if any(is_within(document.source, path) for path in found.paths))
    return steps, [document for document in gone if document.id not in taken]


def _new_id(path: Path, content_hash: str, used: Collection[str]) -> str:
    """An id that no other document has: readable, and made from the content, so that it is the same everywhere."""
    slug = "-".join(re.findall(r"[^\W_]+", path.stem.lower()))[:_LONGEST_SLUG] or "document"
    plain = f"{slug}-{content_hash[:12]}"
    return next(id_ for id_ in chain([plain], (f"{plain}-{number}" for number in count(2))) if id_ not in used)
