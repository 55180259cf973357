"""TriviaQA without context (Joshi et al., ACL 2017, arXiv:1705.03551): quiz questions, answers with aliases.

It comes without paragraphs: evidence is retrieved from your own corpus.
"""

from .dataset import Dataset
from .hub import Hub
from .schema import open_question

DATASET = Dataset(
    name="triviaqa",
    hub=Hub("mandarjoshi/trivia_qa", "rc.nocontext"),
    parse=open_question("triviaqa"),
    data_file="`trivia_qa`'s rows, or FlashRAG's",
    example={
        "question_id": "tc_1",
        "question": "Which river flows through Orley?",
        "answer": {"value": "Tarn", "aliases": ["The Tarn", "River Tarn"]},
    },
)
