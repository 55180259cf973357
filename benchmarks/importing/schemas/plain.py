"""A list of `{"id", "prediction"}`, or one such object a line, as rows of our own `samples.jsonl` are."""

from pydantic import Field

from .schema import RowWithId, Schema, list_with


class _Row(RowWithId):
    text: str | None = Field(alias="prediction")


SCHEMA = Schema(
    name="plain",
    about='a list, or lines, of {"id", "prediction"}',
    rows=list_with("id", "prediction"),
    row=_Row,
    example=[{"id": "q1", "prediction": "Oslo"}],
)
