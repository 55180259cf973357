"""StrategyQA (Geva et al., TACL 2021, arXiv:2101.02235): yes or no, by steps that the question does not name.

It comes without paragraphs: evidence is searched in a corpus of your own.
"""

from .dataset import Dataset
from .hub import Hub
from .reading.open_rows import open_question

DATASET = Dataset(
    name="strategyqa",
    hub=Hub("ChilleD/StrategyQA", split="test"),
    parse=open_question("strategyqa"),
    data_file="`strategyqa_train.json`, or FlashRAG's",
    example={
        "qid": "b8677742",
        "term": "Otter",
        "question": "Could an otter drown in the Tarn?",
        "answer": False,
        "facts": "Otters hold their breath for minutes.",
    },
)
