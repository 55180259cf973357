"""Questions to choose from: the sample, and files or the hub's rows in the schema of a multi-hop data set."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..datasets.hub_rows import HUBS, place, read_hub_rows
from ..errors import DataFileError
from ..retrieval.corpus.sample import SAMPLE, sample_rows
from ..retrieval.passage import Passage, passage_id

MOST_FETCHED = 1000
"""Questions that are kept of a data set on the hub."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its gold answers (the first, then its aliases) and the paragraphs that come with it."""

    id: str
    text: str
    golds: tuple[str, ...]
    passages: tuple[Passage, ...]
    hops: int | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """The questions of one source, in its order."""

    name: str
    questions: tuple[Question, ...]

    def get(self, id_: str) -> Question | None:
        """The question of an id, or `None`."""
        return next((question for question in self.questions if question.id == id_), None)


def sample_questions() -> QuestionSet:
    """The questions of the packaged sample."""
    return QuestionSet(name=SAMPLE, questions=tuple(_question(row) for row in sample_rows()))


def read_questions(path: Path) -> QuestionSet:
    """The questions of an official file (HotpotQA, 2WikiMultiHopQA, MuSiQue), JSON or JSON Lines.

    Raises `DataFileError` that names the file, and the row from 1 where one is malformed.
    """
    return _question_set(path.stem, path.name, _rows(path))


def hub_questions(name: str) -> QuestionSet:
    """The first questions of a data set on the Hugging Face hub. Raises `DataFileError` where it cannot be had."""
    rows = read_hub_rows(HUBS[name], most=MOST_FETCHED)
    return _question_set(name, place(HUBS[name]), rows)


def _question_set(name: str, source: str, rows: Sequence[Any]) -> QuestionSet:
    questions = []
    for number, row in enumerate(rows, start=1):
        try:
            if row.get("answerable", True):  # MuSiQue has others too
                questions.append(_question(row))
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise DataFileError(
                f"{source}: row {number} is no question of HotpotQA, 2WikiMultiHopQA or MuSiQue "
                f"({type(fault).__name__}: {fault}); name an official file."
            ) from None
    if not questions:
        raise DataFileError(f"{source} holds no question; name an official file.")
    return QuestionSet(name=name, questions=tuple(questions))


def _rows(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            rows: list[Any] = json.loads(text)
            return rows
        # not splitlines: a row may hold one of the other characters that it takes for a line's end
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except OSError as fault:
        raise DataFileError(f"{str(path)!r} cannot be read ({fault.strerror}); name another file.") from None
    except ValueError as fault:
        raise DataFileError(f"{str(path)!r} is not JSON or JSON Lines ({fault}); name an official file.") from None


def _question(row: dict[str, Any]) -> Question:
    passages = tuple(_passage(title, text) for title, text in _paragraphs(row))
    if not passages or not row["question"].strip():
        raise ValueError("the question or its paragraphs are empty")
    supporting = row.get("supporting_facts")
    titles = supporting.get("title") if isinstance(supporting, dict) else [fact[0] for fact in supporting or ()]
    hops = row.get("hops") or len(set(titles or ())) or None
    return Question(
        id=str(row["_id"] if "_id" in row else row["id"]),
        text=row["question"],
        golds=tuple(dict.fromkeys([row["answer"], *row.get("answer_aliases", ())])),
        passages=passages,
        hops=hops,
    )


def _paragraphs(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "paragraphs" in row:  # MuSiQue
        yield from ((paragraph["title"], paragraph["paragraph_text"]) for paragraph in row["paragraphs"])
        return
    context = row["context"]
    if isinstance(context, dict):  # as the hub has it: a column each
        sentences = context["sentences"] if "sentences" in context else context["content"]
        context = list(zip(context["title"], sentences, strict=True))
    yield from ((title, _joined(sentences)) for title, sentences in context)


def _joined(sentences: Sequence[str]) -> str:
    """HotpotQA's sentences bring their leading blank, those of 2WikiMultiHopQA do not."""
    return ("" if any(sentence[:1].isspace() for sentence in sentences) else " ").join(sentences)


def _passage(title: str, text: str) -> Passage:
    identity = passage_id(title, text)
    return Passage(id=identity, doc_id=identity, title=title, text=text)
