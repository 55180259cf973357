"""A list of `{"id", "question", "prediction"}`, or one such object a line, as rows of our own `samples.jsonl` are.

One of `id` and `question` is enough. With both, a row whose text is another question is not matched by its id.
"""

from pydantic import Field

from .schema import NamedRow, Schema, list_with


class _Row(NamedRow):
    text: str | None = Field(alias="prediction")


SCHEMA = Schema(
    name="plain",
    about='a list, or lines, of {"id" or "question", "prediction"}',
    rows=list_with("prediction"),
    row=_Row,
    example=[{"id": "q1", "prediction": "Oslo"}],
)
