"""LangChain's retrievers as ours, and ours as LangChain's."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from ..errors import InputError
from .fusion import best_of
from .passage import Found, Passage, passage_id
from .retriever import Retrieval
from .screening import screen


class CorpusRetriever(BaseRetriever):
    """A retriever of this package as LangChain's; `metadata` has id, document, title, section, page and score."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    retriever: Any
    k: int = 5

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = (await self.retriever.retrieve([query], k=self.k)).found
        return [_document(one) for one in found]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with ThreadPoolExecutor(max_workers=1) as own:  # where no event loop runs
            work = own.submit(asyncio.run, self.retriever.retrieve([query], k=self.k))
            return [_document(one) for one in work.result().found]


@dataclass(frozen=True, kw_only=True)
class ForeignRetriever:
    """A `Retriever` over a LangChain `BaseRetriever`: Documents become passages.

    A passage has the `title`, `source` (in place of a title) and `page` of the metadata. The order is the retriever's.
    With `screening`, passages that address the model are left out.
    """

    inner: BaseRetriever
    screening: bool = True

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        """See `Retriever`. Raises `InputError` if the retriever returns something without text."""
        asked = [query for query in dict.fromkeys(queries) if query.strip()]
        rankings = [self._ranked(await self.inner.ainvoke(query)) for query in asked]
        if not rankings:
            return Retrieval()
        best = rankings[0] if len(rankings) == 1 else best_of(rankings)
        new = [found for found in best if found.passage.id not in exclude]
        screened = screen(new, drop=self.screening, shortest=0)
        return Retrieval(
            found=tuple(screened.kept[:k]),
            dropped=tuple(screened.dropped),
            pool_ids=tuple(found.passage.id for found in best),
        )

    def _ranked(self, documents: Sequence[Document]) -> list[Found]:
        passages = {one.id: one for one in map(self._passage, documents) if one.text.strip()}
        if documents and not passages:
            raise self._unusable()
        return [Found(passage=one, score=1.0 / place) for place, one in enumerate(passages.values(), start=1)]

    def _passage(self, document: Document) -> Passage:
        text = getattr(document, "page_content", None)
        if not isinstance(text, str):
            raise self._unusable()
        metadata = document.metadata or {}
        title, page = str(metadata.get("title") or metadata.get("source") or ""), metadata.get("page")
        identity = document.id or passage_id(title, text)  # a splitter copies an id in the metadata to every part
        number = page if isinstance(page, int) and not isinstance(page, bool) else None
        if number is not None and "total_pages" in metadata:  # LangChain's loaders of PDF count from 0
            number += 1
        return Passage(
            id=identity, doc_id=str(metadata.get("source") or title or identity), title=title, text=text,
            start_page=number, end_page=number,
        )  # fmt: skip

    def _unusable(self) -> InputError:
        return InputError(
            f"The retriever {type(self.inner).__name__} returned a document without text; "
            "return Documents whose page_content is the passage."
        )


def _document(found: Found) -> Document:
    one = found.passage
    metadata = {
        "id": one.id,
        "source": one.doc_id,
        "title": one.title,
        "section": one.section,
        "page": one.start_page,
        "score": found.score,
    }
    return Document(
        id=one.id, page_content=one.text, metadata={key: value for key, value in metadata.items() if value is not None}
    )
