"""StrategyQA (Geva et al., TACL 2021, arXiv:2101.02235): yes-or-no questions with implicit reasoning steps.

It comes without paragraphs: evidence is retrieved from your own corpus.
"""

from .dataset import Dataset
from .hub import Hub
from .schema import open_question

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
