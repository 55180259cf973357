"""The sample course as topics and passages, read as ingestion would."""

from dataclasses import dataclass
from pathlib import Path

from meta_agent_rag.conversation.socratic.topics import Lesson, Topic, lesson, stated_in, topics_of
from meta_agent_rag.errors import InputError
from meta_agent_rag.ingestion.document import Document
from meta_agent_rag.ingestion.parsers import File
from meta_agent_rag.ingestion.parsers.markdown import PARSER
from meta_agent_rag.retrieval.passage import Passage, passage_id
from meta_agent_rag.shipped import shipped

COURSE = shipped("course")


@dataclass(frozen=True, kw_only=True)
class Course:
    """A course: what it is about, and a passage for each paragraph."""

    topics: tuple[Topic, ...]
    passages: tuple[Passage, ...]


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


def _lesson(path: Path, document: Document) -> Lesson:
    headings = dict.fromkeys(block.section for block in document.blocks if block.section)
    return lesson(document.title, stated_in(path), headings)


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
