"""Questions of every data set; a file of this folder that exports `DATASET` is one."""

from .dataset import Dataset
from .question import Paragraph, Question
from .registry import LoadedQuestions, discover, load_file, load_questions

__all__ = [
    "Dataset",
    "LoadedQuestions",
    "Paragraph",
    "Question",
    "discover",
    "load_file",
    "load_questions",
]
