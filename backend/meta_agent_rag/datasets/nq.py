"""Natural Questions, open-domain (Kwiatkowski et al., TACL 2019; Lee et al., ACL 2019): questions of Google's users.

It comes without paragraphs: evidence is retrieved from your own corpus.
"""

from .dataset import Dataset
from .hub import Hub
from .schema import open_question

DATASET = Dataset(
    name="nq",
    hub=Hub("google-research-datasets/nq_open"),
    parse=open_question("nq"),
    data_file="`NQ-open.dev.jsonl`, or FlashRAG's",
    example={"question": "where does the tarn rise", "answer": ["Mont Harl", "Harl"]},
)
