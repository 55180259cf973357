"""The steps for each file, from the current contents of the corpus and the files.

Decided before anything is read, for all files at once, because two files may have swapped their contents.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from ..retrieval.corpus.catalogue import DocumentRecord
from .report import Status
from .sources import FoundFile, SourceFiles, is_gone

_LONGEST_SLUG = 48


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
    gone: tuple[DocumentRecord, ...]
    copies: tuple[DocumentRecord, ...]


def plan_for(found: SourceFiles, hashes: Mapping[str, str], documents: Sequence[DocumentRecord]) -> IngestPlan:
    """The plan for the files that have a hash, by source; `documents` are those in the corpus."""
    known = {document.source: document for document in documents}
    present = {file.source for file in found.files} | {passed.source for passed in found.passed_over}
    lost = [document for document in documents if document.source not in present and is_gone(document.source)]
    orphans = {document.content_hash: document for document in lost}
    owners = _owners(hashes, [document for document in documents if document not in lost])
    ids = _NewIds(documents)
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
            steps.append(PlannedFile(file=file, status="added", doc_id=ids.new(file.path, content)))
    taken = {step.doc_id for step in steps}
    held = {document.source for document in documents if hashes.get(document.source) in {None, document.content_hash}}
    copied = {step.file.source for step in steps if step.same_as in held}
    return IngestPlan(
        steps=tuple(steps),
        gone=tuple(document for document in lost if found.covers(document.source) and document.id not in taken),
        copies=tuple(document for source, document in known.items() if source in copied),
    )


def _owners(hashes: Mapping[str, str], documents: Sequence[DocumentRecord]) -> dict[str, str]:
    """The source from which each content is taken: an unchanged one, one elsewhere, or else the first file."""
    owners: dict[str, str] = {}
    for document in documents:
        if hashes.get(document.source, document.content_hash) == document.content_hash:
            owners.setdefault(document.content_hash, document.source)
    for source, content in hashes.items():
        owners.setdefault(content, source)
    return owners


class _NewIds:
    """Ids for new documents: readable, and derived from content, so that they are the same on every machine."""

    def __init__(self, documents: Sequence[DocumentRecord]) -> None:
        self._used = {document.id for document in documents}

    def new(self, path: Path, content_hash: str) -> str:
        """An id that no other document has."""
        slug = "-".join(re.findall(r"[^\W_]+", path.stem.lower()))[:_LONGEST_SLUG] or "document"
        plain = f"{slug}-{content_hash[:12]}"
        numbered = chain([plain], (f"{plain}-{number}" for number in count(2)))
        chosen = next(id_ for id_ in numbered if id_ not in self._used)
        self._used.add(chosen)
        return chosen
