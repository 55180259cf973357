"""PopQA (Mallen et al., ACL 2023, arXiv:2212.10511): questions about rare and common entities, by Wikidata's relation.

It comes without paragraphs: evidence is retrieved from your own corpus.
"""

from .dataset import Dataset
from .hub import Hub
from .schema import open_question

DATASET = Dataset(
    name="popqa",
    hub=Hub("akariasai/PopQA", split="test"),
    parse=open_question("popqa"),
    data_file="rows of its test split, or FlashRAG's",
    example={
        "id": 4222362,
        "subj": "Mara Voss",
        "prop": "occupation",
        "obj": "painter",
        "question": "What is Mara Voss's occupation?",
        "possible_answers": '["painter", "artist"]',
    },
)
