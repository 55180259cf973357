"""The subject of a corpus: its topics, and whether a message is within it.

A single cosine says little, since encoders differ and corpora are broad or narrow. Therefore a message is compared with
the corpus and with general questions (`generic.yaml`), and its score is the margin by which the corpus is nearer.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from ...discovery import named
from ...retrieval.batching import AsyncEncoder
from ...retrieval.corpus.catalogue import Catalogue, DocumentRecord
from ...retrieval.vectors import FloatMatrix
from ..phrases import folder_in_use, rows_of
from .hook import ScopeScore
from .levels import levels

MOST_ANCHORS = 2000
"""The most titles and headings that are compared; in a larger corpus, the first by topic and title."""
MOST_PASSAGES = 5000
"""The most passages that are compared; in a larger corpus, every second, third etc. passage."""

_FRONT_MATTER_CHARACTERS = 8192
_ALLOWANCE_FOR_REPLIES = 0.15
"""By how much the threshold is lower for a reply to the coach's question, which is also compared with that question."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A part of the subject, and the texts that represent it; `level` is the coach's initial level for it.

    `documents` are the ids of those that it is taught from; if empty, all of them.
    """

    name: str
    anchors: tuple[str, ...]
    level: int | None = None
    documents: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Topics, and the vectors of their passages: `owners` has the topic number of each row."""

    topics: tuple[Topic, ...] = ()
    vectors: FloatMatrix = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32), compare=False, repr=False)
    owners: tuple[int, ...] = ()


def topic_named(topics: Iterable[Topic], name: str) -> Topic:
    """The topic with that name. Raises `UnknownNameError`."""
    return named("topic", name, {topic.name: topic for topic in topics})


def subject_of(catalogue: Catalogue | None) -> Subject:
    """The subject of a corpus, made from its titles, headings and passages; an empty one without a corpus.

    Documents whose front matter names a topic are grouped under it; every other document is a topic of its own. The
    front matter is read from the Markdown file, if it is still in its place.
    """
    if catalogue is None:
        return Subject()
    documents = catalogue.documents()
    step = 1 + sum(document.passages for document in documents) // MOST_PASSAGES
    headings: dict[str, dict[str, None]] = {}
    kept: list[tuple[str, FloatMatrix]] = []
    number = 0
    for part in catalogue.parts():
        for passage, vector in zip(part.passages, part.vectors, strict=True):
            if passage.section:
                headings.setdefault(passage.doc_id, {})[passage.section] = None
            if number % step == 0:
                kept.append((passage.doc_id, vector.copy()))  # a copy of the row, so that its block can be freed
            number += 1
    topics = _topics(documents, headings)
    numbers = {document: number for number, topic in enumerate(topics) for document in topic.documents}
    own = [(numbers[document], vector) for document, vector in kept if document in numbers]
    vectors = np.array([vector for _, vector in own], dtype=np.float32)
    return Subject(topics=topics, vectors=vectors, owners=tuple(number for number, _ in own))


def _topics(documents: Iterable[DocumentRecord], headings: Mapping[str, Mapping[str, None]]) -> tuple[Topic, ...]:
    """The topics of documents sorted by name, each with the lowest level of its documents.

    Anchors are titles, and each heading after its title.
    """
    topics: dict[str, Topic] = {}
    for one in documents:
        name, level = front_matter(Path(one.source)) if one.kind == "markdown" else ("", None)
        topic = topics.get(name or one.title, Topic(name=name or one.title, anchors=()))
        own = [f"{one.title}: {heading}" for heading in headings.get(one.id, ()) if heading != one.title]
        topics[topic.name] = replace(
            topic,
            anchors=tuple(dict.fromkeys((*topic.anchors, one.title, *own))),
            level=min((each for each in (topic.level, level) if each is not None), default=None),
            documents=topic.documents | {one.id},
        )
    return tuple(topics[name] for name in sorted(topics))


def front_matter(path: Path) -> tuple[str, int | None]:
    """The topic and the level that a Markdown file states; empty and `None` if it states none or cannot be read."""
    import frontmatter
    from frontmatter.default_handlers import YAMLHandler

    try:
        with path.open(encoding="utf-8-sig") as file:
            front, _ = frontmatter.parse(file.read(_FRONT_MATTER_CHARACTERS), handler=YAMLHandler())
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError):
        return "", None  # the fault was reported when the file was ingested
    topic, level = front.get("topic"), front.get("level")
    name = " ".join(topic.split()) if isinstance(topic, str) else ""
    return name, level if isinstance(level, int) and not isinstance(level, bool) and level in levels() else None


@dataclass(frozen=True, kw_only=True)
class TopicScope:
    """A `Scope` over a subject; everything is encoded once, on the first message.

    `encoder` must be the one that encoded the subject's passages.
    """

    subject: Subject
    encoder: AsyncEncoder
    threshold: float = 0.05
    _encoded: list[tuple[FloatMatrix, NDArray[np.int64], FloatMatrix]] = field(
        default_factory=list, compare=False, repr=False
    )
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def score(self, message: str, *, asked: str = "") -> ScopeScore | None:
        """See `Scope`."""
        if not self.subject.topics:
            return None
        rows, owners, rivals = await self._compared()
        vectors = await self.encoder.queries([message, asked] if asked else [message])
        cosines = rows @ vectors[0]
        place = int(cosines.argmax())
        nearest = max(float(cosines[place]), float(vectors[0] @ vectors[1]) if asked else -np.inf)
        margin = nearest - float((rivals @ vectors[0]).max())
        threshold = self.threshold - (_ALLOWANCE_FOR_REPLIES if asked else 0.0)
        return ScopeScore(topic=self.subject.topics[owners[place]].name, score=margin, threshold=threshold)

    async def _compared(self) -> tuple[FloatMatrix, NDArray[np.int64], FloatMatrix]:
        """The rows that messages are compared with, the topic number of each, and those of general questions."""
        async with self._encoding:
            if not self._encoded:
                named = [(number, text) for number, topic in enumerate(self.subject.topics) for text in topic.anchors]
                named = named[:MOST_ANCHORS]
                anchors = await self.encoder.passages([text for _, text in named])
                rows = np.concatenate([anchors, self.subject.vectors]) if self.subject.owners else anchors
                owners = np.array([*(number for number, _ in named), *self.subject.owners], dtype=np.int64)
                rivals = await self.encoder.passages(rows_of("generic", folder_in_use())["rivals"])
                self._encoded.append((rows, owners, rivals))
        return self._encoded[0]
