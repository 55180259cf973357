"""The questions that a visitor can choose from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from ..datasets import Dataset, HubAccess, LoadedQuestions, Question, load_file, load_questions
from ..retrieval.corpus.sample import SAMPLE

MOST_FETCHED = 1000
"""The number of questions kept from a data set on the hub."""


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """The questions of one source, in their original order."""

    name: str
    questions: tuple[Question, ...]

    def get(self, id_: str) -> Question | None:
        """The question with an id, or `None`."""
        return next((question for question in self.questions if question.id == id_), None)


def sample_questions() -> QuestionSet:
    """The questions of the packaged sample."""
    return _named(SAMPLE, load_questions(SAMPLE))


def read_questions(path: Path, known: Mapping[str, Dataset] | None = None) -> QuestionSet:
    """The questions of an official file of any known data set. Raises `DataFileError`."""
    return _named(path.stem, load_file(path, registry=known))


def hub_questions(name: str, token: SecretStr | None = None, known: Mapping[str, Dataset] | None = None) -> QuestionSet:
    """The first questions of a data set on the Hugging Face hub. Raises `DataFileError` if they are unavailable."""
    access = HubAccess(token=token)
    return _named(name, load_questions(name, registry=known, most=MOST_FETCHED, access=access))


def _named(name: str, loaded: LoadedQuestions) -> QuestionSet:
    return QuestionSet(name=name, questions=loaded.questions)
