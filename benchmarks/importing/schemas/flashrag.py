"""FlashRAG's `intermediate_data.json`: its data set as a list, each item's `output` with `pred`.

Its ids are those of its own copies of the data sets ("test_0"), so questions are matched by text. Source: `save`
and `to_dict` in `flashrag/dataset/dataset.py` of RUC-NLPIR/FlashRAG; `pred` is what its metrics score.
"""

from pydantic import BaseModel

from .schema import Prediction, PredictionRow, Schema, list_with


class _Output(BaseModel, frozen=True, strict=True, extra="ignore"):
    pred: str | None = None


class _Row(PredictionRow):
    id: str | int | None = None
    question: str
    output: _Output

    def prediction(self) -> Prediction:
        """An item without `pred` counts as failed."""
        return Prediction(
            id=None if isinstance(self.id, int) else self.id, question=self.question, text=self.output.pred
        )


SCHEMA = Schema(
    name="flashrag",
    about="FlashRAG: intermediate_data.json",
    rows=list_with("question", "output"),
    row=_Row,
    example=[{"id": "test_0", "question": "Where?", "golden_answers": ["Oslo"], "output": {"pred": "Oslo"}}],
)
