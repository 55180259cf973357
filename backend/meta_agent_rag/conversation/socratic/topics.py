"""Topics of a corpus and how near a message is to them: the cosine with anchor texts."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import yaml

from ...errors import DataFileError, UnknownNameError
from ...retrieval.batching import AsyncEncoder
from ...retrieval.corpus.catalogue import DocumentRecord
from ...retrieval.passage import Passage
from ...retrieval.vectors import FloatMatrix
from .hook import ScopeScore
from .levels import levels

MOST_ANCHORS = 2000
"""Anchor texts that are compared; of a larger corpus the first by topic and title."""

_FRONT_MATTER_CHARACTERS = 8192
_READ_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A part of the subject, and the texts that stand for it; `level` is the one at which the coach begins with it."""

    name: str
    anchors: tuple[str, ...]
    level: int | None = None


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What a document's front matter says of its place in a course, as far as it does."""

    topic: str = ""
    level: int | None = None


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a document says about itself. `topic` is its own title where its front matter names none."""

    title: str
    topic: str
    level: int | None = None
    headings: tuple[str, ...] = ()


class Catalogued(Protocol):
    """Where documents and their passages are listed."""

    def documents(self) -> tuple[DocumentRecord, ...]:
        """All documents."""

    def everything(self, size: int) -> Iterator[tuple[list[Passage], FloatMatrix]]:
        """All passages with their vectors, `size` at a time."""


@dataclass(frozen=True, kw_only=True)
class TopicScope:
    """Compares messages with topics; anchors are encoded once, at the first message."""

    topics: tuple[Topic, ...]
    encoder: AsyncEncoder
    threshold: float
    _encoded: list[FloatMatrix] = field(default_factory=list, compare=False, repr=False)
    _encoding: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def score(self, message: str, topic: str = "") -> ScopeScore | None:
        """See `Scope`. Raises `UnknownNameError` for an unknown topic."""
        if topic:
            topic_named(self.topics, topic)
        rows = [(one.name, anchor) for one in self.topics for anchor in one.anchors][:MOST_ANCHORS]
        if not rows:
            return None
        anchors = await self._anchors([anchor for _, anchor in rows])
        (vector,) = await self.encoder.queries([message])
        cosines = anchors @ vector
        if topic:
            cosines = np.where([name == topic for name, _ in rows], cosines, -np.inf)
        best = int(np.argmax(cosines))
        score = float(cosines[best])
        return ScopeScore(topic=rows[best][0], score=score) if np.isfinite(score) else None

    async def _anchors(self, texts: Sequence[str]) -> FloatMatrix:
        async with self._encoding:
            if not self._encoded:
                self._encoded.append(await self.encoder.passages(texts))
        return self._encoded[0]


def topic_named(topics: Iterable[Topic], name: str) -> Topic:
    """The topic with that name. Raises `UnknownNameError`."""
    known = {topic.name: topic for topic in topics}
    if name not in known:
        raise UnknownNameError("topic", name, list(known))
    return known[name]


def read_topics(path: Path) -> tuple[Topic, ...]:
    """Topics from a YAML file that maps each name to a list of anchor texts. Raises `DataFileError`."""
    try:
        rows: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataFileError(f"SCOPE_TOPICS {str(path)!r} cannot be read ({error.strerror}); check the path.") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise DataFileError(f"SCOPE_TOPICS {str(path)!r} is not YAML in UTF-8; map each topic to a list.") from None
    if not isinstance(rows, Mapping) or not rows:
        raise DataFileError(f"SCOPE_TOPICS {str(path)!r} contains no topics; map each topic to a list of texts.")
    for name, anchors in rows.items():
        is_list = isinstance(anchors, list) and anchors and all(isinstance(one, str) and one.strip() for one in anchors)
        if not isinstance(name, str) or not is_list:
            raise DataFileError(
                f"The topic {name!r} of {str(path)!r} is not a list of texts; write one '- text' per line."
            )
    return tuple(Topic(name=name, anchors=tuple(anchors)) for name, anchors in rows.items())


def corpus_topics(catalogue: Catalogued) -> tuple[Topic, ...]:
    """The topics of a corpus, by its own titles and headings.

    Documents whose front matter names a topic are gathered under it; every other one is a topic of its own. The
    front matter is read from the Markdown file where it is still in its place.
    """
    headings: dict[str, dict[str, None]] = {}
    read = 0
    for passages, _ in catalogue.everything(_READ_AT_ONCE):
        for passage in passages:
            if passage.section:
                headings.setdefault(passage.doc_id, {})[passage.section] = None
        read += len(passages)
        if read >= MOST_ANCHORS:
            break
    return topics_of(
        lesson(document.title, _stated(document), headings.get(document.id, ()))
        for document in catalogue.documents()[:MOST_ANCHORS]
    )


def lesson(title: str, stated: Stated, headings: Iterable[str]) -> Lesson:
    """A document as a lesson."""
    return Lesson(title=title, topic=stated.topic or title, level=stated.level, headings=tuple(headings))


def topics_of(lessons: Iterable[Lesson]) -> tuple[Topic, ...]:
    """The topics of lessons in the order of names, each with the lowest level of its lessons.

    Anchors are titles, and each heading behind its title.
    """
    gathered: dict[str, dict[str, None]] = {}
    begins: dict[str, int] = {}
    for one in lessons:
        anchors = gathered.setdefault(one.topic, {})
        anchors[one.title] = None
        anchors.update({f"{one.title}: {heading}": None for heading in one.headings if heading != one.title})
        if one.level is not None:
            begins[one.topic] = min(one.level, begins.get(one.topic, one.level))
    return tuple(Topic(name=name, anchors=tuple(gathered[name]), level=begins.get(name)) for name in sorted(gathered))


def _stated(document: DocumentRecord) -> Stated:
    return Stated() if document.kind != "markdown" else stated_in(Path(document.source))


def stated_in(path: Path) -> Stated:
    """What a Markdown file's front matter says; nothing if there is none, or no such file, or no such level."""
    import frontmatter
    from frontmatter.default_handlers import YAMLHandler

    try:
        with path.open(encoding="utf-8-sig") as file:
            beginning = file.read(_FRONT_MATTER_CHARACTERS)
        front, _ = frontmatter.parse(beginning, handler=YAMLHandler())
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError):
        return Stated()  # what cannot be read was said when the file was ingested; the title stands in
    topic, level = front.get("topic"), front.get("level")
    return Stated(
        topic=" ".join(topic.split()) if isinstance(topic, str) else "",
        level=level if isinstance(level, int) and not isinstance(level, bool) and level in levels() else None,
    )
