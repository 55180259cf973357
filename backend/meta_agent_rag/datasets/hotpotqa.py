"""HotpotQA (Yang et al., EMNLP 2018, arXiv:1809.09600), distractor setting: ten paragraphs, two of them supporting.

Official file: `hotpot_dev_distractor_v1.json` from https://hotpotqa.github.io (CC BY-SA 4.0).
"""

from .dataset import Aliases, Dataset, Question
from .hub import Hub
from .schema import HotpotRow, paragraphs


def parse(raw: object, _aliases: Aliases) -> Question:
    """Convert a row of the official file or of the hub."""
    row = HotpotRow.model_validate(raw)
    return Question(
        id=row.id,
        text=row.question,
        answer=row.answer,
        type=row.type,
        hops=row.hops(),
        paragraphs=paragraphs(row),
        supporting_facts=row.supporting_facts,
    )


DATASET = Dataset(
    name="hotpotqa",
    title="HotpotQA",
    hub=Hub("hotpotqa/hotpot_qa", "distractor"),
    parse=parse,
    data_file="`hotpot_dev_distractor_v1.json`",
    example={
        "_id": "hotpot-1",
        "question": "In which town was the composer of the opera Aurel born?",
        "answer": "Lindholm",
        "type": "bridge",
        "supporting_facts": [["Aurel (opera)", 0], ["Ida Renn", 1]],
        "context": [
            ["Aurel (opera)", ["Aurel is an opera by Ida Renn.", " It has three acts."]],
            ["Ida Renn", ["Ida Renn was a composer.", " She was born in Lindholm."]],
        ],
    },
)
