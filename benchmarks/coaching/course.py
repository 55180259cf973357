"""The course as topics and passages, read as in ingestion: the sample course, or any Markdown files."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meta_agent_rag.chat.coach.scope import Lesson, Subject, Topic, lesson, stated_in, topics_of
from meta_agent_rag.errors import InputError
from meta_agent_rag.ingestion.document import Document
from meta_agent_rag.ingestion.parsers import File
from meta_agent_rag.ingestion.parsers.markdown import PARSER
from meta_agent_rag.retrieval.corpus.sample import sample_passages
from meta_agent_rag.retrieval.encoders.encoder import Encoder
from meta_agent_rag.retrieval.passage import Passage, passage_id
from meta_agent_rag.shipped import shipped

COURSE = shipped("course")
MANUAL = Path(__file__).parents[2] / "docs"
"""The documentation, which only a clone contains."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """A course: its topics, and a passage for each paragraph."""

    topics: tuple[Topic, ...]
    passages: tuple[Passage, ...]

    def subject(self, encoder: Encoder) -> Subject:
        """In the form in which the coach compares messages with it."""
        numbers = {document: number for number, topic in enumerate(self.topics) for document in topic.documents}
        vectors = encoder.encode_passages([passage.searchable() for passage in self.passages])
        owners = tuple(numbers[passage.doc_id] for passage in self.passages)
        return Subject(topics=self.topics, vectors=np.asarray(vectors, dtype=np.float32), owners=owners)


def read_course(folder: Path = COURSE) -> Course:
    """The course in a folder of Markdown files. Raises `InputError` if there is none."""
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise InputError(f"No course found in {str(folder)!r}; name a folder with Markdown files.")
    documents = [(path, PARSER.parse(File(name=path.name, content=path.read_bytes()))) for path in paths]
    return Course(
        topics=topics_of(_lesson(path, document) for path, document in documents),
        passages=tuple(passage for path, document in documents for passage in _passages(path.name, document)),
    )


def sample_course() -> Course:
    """The corpus `sample`, in which each paragraph is a topic."""
    passages = sample_passages()
    lessons = [Lesson(title=one.title, topic=one.title, document=one.doc_id) for one in passages]
    return Course(topics=topics_of(lessons), passages=passages)


def _lesson(path: Path, document: Document) -> Lesson:
    headings = dict.fromkeys(block.section for block in document.blocks if block.section)
    return replace(lesson(document.title, stated_in(path), headings), document=path.name)


def _passages(name: str, document: Document) -> list[Passage]:
    return [
        Passage(
            id=passage_id(document.title, block.text),
            doc_id=name,
            title=document.title,
            text=block.text,
            section=block.section,
        )
        for block in document.blocks
        if block.text != block.section
    ]
