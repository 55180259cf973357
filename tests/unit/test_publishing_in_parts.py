"""A large file of rows is published in parts, and completed after an interruption; other documents are one part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.corpus.catalogue import AT_ONCE, Catalogue, DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import publish
from meta_agent_rag.retrieval.corpus.locations import Indexed
from meta_agent_rag.retrieval.passage import Passage

COUNT = 2 * AT_ONCE + 7


class Index:
    """A store of ids, whose update fails once it was called `fails_at` times."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.ids: set[str] = set()
        self.sizes: list[int] = []
        self.fails_at = fails_at

    async def update(self, passages: Sequence[Passage], *_: object, removed: Sequence[str] = ()) -> None:
        if len(self.sizes) == self.fails_at:
            raise ConnectionError
        self.sizes.append(len(passages))
        self.ids -= set(removed)
        self.ids |= {passage.id for passage in passages}


@pytest.fixture
def catalogue(tmp_path: Path) -> Any:
    opened = Catalogue(tmp_path / "catalogue.sqlite", 2)
    yield opened
    opened.close()


def staged(catalogue: Catalogue, numbers: range, *, kind: str = "passages", words: str = "old") -> int:
    """Stage the document `d` with these rows; all get vectors. Returns how many lacked one."""
    record = DocumentRecord(id="d", source="d", title="D", kind=kind, content_hash=words)
    rows = [Passage(id=f"p{n}", doc_id=f"p{n}", title=f"Note {n}", text=f"{n} {words}") for n in numbers]
    lacking = catalogue.stage(record, rows)
    while waiting := catalogue.unencoded(AT_ONCE):
        catalogue.add_vectors([passage.id for passage in waiting], np.ones((len(waiting), 2), dtype=np.float32))
    return lacking


async def published(catalogue: Catalogue, dense: Index, lexical: Index) -> None:
    await publish(cast("Any", Indexed)(catalogue, dense, lexical), catalogue.complete())


async def test_rows_are_published_in_parts(catalogue: Catalogue) -> None:
    dense, lexical = Index(), Index()
    assert staged(catalogue, range(COUNT)) == COUNT
    await published(catalogue, dense, lexical)
    assert dense.sizes == lexical.sizes == [AT_ONCE, AT_ONCE, 7]
    assert catalogue.counts() == (1, COUNT)
    assert set(catalogue.named(["note 5000"])) == {"note 5000"}


async def test_the_passages_of_one_document_are_published_together(catalogue: Catalogue) -> None:
    dense, lexical = Index(), Index()
    staged(catalogue, range(COUNT), kind="text")
    await published(catalogue, dense, lexical)
    assert dense.sizes == lexical.sizes == [COUNT]


async def test_an_interrupted_publication_is_completed(catalogue: Catalogue) -> None:
    dense, lexical = Index(), Index()
    staged(catalogue, range(COUNT))
    await published(catalogue, dense, lexical)
    assert staged(catalogue, range(100, COUNT + 50), words="new") == COUNT - 50
    dense.fails_at = 4
    with pytest.raises(ConnectionError):
        await published(catalogue, dense, lexical)
    assert catalogue.counts() == (1, COUNT)
    assert catalogue.passages(["p200"])["p200"].text == "200 old"
    dense.fails_at = None
    await publish(cast("Any", Indexed)(catalogue, dense, lexical), catalogue.interrupted())
    assert dense.ids == lexical.ids == {f"p{n}" for n in range(100, COUNT + 50)}
    assert catalogue.counts() == (1, COUNT - 50)
    assert catalogue.passages(["p200"])["p200"].text == "200 new"


def test_a_repeated_id_is_found_across_parts_and_nothing_is_staged(catalogue: Catalogue) -> None:
    rows = [Passage(id=f"p{n % AT_ONCE}", doc_id="d", title="", text=f"{n}") for n in range(AT_ONCE + 1)]
    record = DocumentRecord(id="d", source="d", title="D", kind="passages", content_hash="1")
    with pytest.raises(InputError, match="Two passages have the id 'p0'"):
        catalogue.stage(record, rows)
    assert catalogue.is_empty()


def test_staging_again_reuses_vectors_and_forgets_other_rows(catalogue: Catalogue) -> None:
    staged(catalogue, range(COUNT))
    assert staged(catalogue, range(COUNT - 10, COUNT + 20)) == 20
    (part,) = catalogue.staged(["d"])
    assert [passage.id for passage in part.passages] == [f"p{n}" for n in range(COUNT - 10, COUNT + 20)]
