"""The corpus `sample`: invented paragraphs, available on every machine."""

from ..passage import Passage, passages_of

SAMPLE = "sample"


def sample_passages() -> tuple[Passage, ...]:
    """All paragraphs of the sample questions, without duplicates, in file order."""
    from ...datasets import load_questions  # which needs pydantic; the name of the corpus does not

    return passages_of(paragraph for one in load_questions(SAMPLE).questions for paragraph in one.paragraphs)
