"""Bamboogle (Press et al., EMNLP Findings 2023, arXiv:2210.03350): 125 handwritten two-hop questions.

It comes without paragraphs: evidence is retrieved from your own corpus.
"""

from .dataset import Dataset
from .hub import Hub
from .schema import open_question

DATASET = Dataset(
    name="bamboogle",
    hub=Hub("chiayewken/bamboogle", split="test"),
    parse=open_question("bamboogle"),
    data_file="its rows, or FlashRAG's",
    example={"Question": "Who was mayor of Orley when the Ridge Tunnel opened?", "Answer": "Ines Karstad"},
)
