"""A list of `{"id", "prediction"}`, or one such object a line, as rows of our own `samples.jsonl` are."""

from pydantic import Field

from .schema import Prediction, PredictionRow, Schema, list_with


class _Row(PredictionRow):
    id: str
    text: str | None = Field(alias="prediction")

    def prediction(self) -> Prediction:
        """Matched by id alone."""
        return Prediction(id=self.id, question=None, text=self.text)


SCHEMA = Schema(
    name="plain",
    about='a list, or lines, of {"id", "prediction"}',
    rows=list_with("id", "prediction"),
    row=_Row,
    example=[{"id": "q1", "prediction": "Oslo"}],
)
