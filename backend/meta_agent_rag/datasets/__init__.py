"""Questions of every data set; a file of this folder that exports `DATASET` is one."""

from .dataset import Dataset
from .loading import LoadedQuestions, discover, load_file, load_questions
from .question import Paragraph, Question

__all__ = [
    "Dataset",
    "LoadedQuestions",
    "Paragraph",
    "Question",
    "discover",
    "load_file",
    "load_questions",
]
