"""Questions of every data set; a file of this folder that exports `DATASET` is one."""

from .dataset import Dataset
from .question import Paragraph, Question
from .registry import LoadedQuestions, discover, load_questions
from .sampling import by_id, by_position, draw

__all__ = [
    "Dataset",
    "LoadedQuestions",
    "Paragraph",
    "Question",
    "by_id",
    "by_position",
    "discover",
    "draw",
    "load_questions",
]
