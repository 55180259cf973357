"""The data sets; each file of this folder, or of DATASETS_DIR, that exports `DATASET` is one."""

from .dataset import Dataset, Paragraph, Question
from .hub import HubAccess
from .loading import LoadedQuestions, discover, load_file, load_questions

__all__ = [
    "Dataset",
    "HubAccess",
    "LoadedQuestions",
    "Paragraph",
    "Question",
    "discover",
    "load_file",
    "load_questions",
]
