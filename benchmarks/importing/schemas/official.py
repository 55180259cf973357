"""HotpotQA's official file: `{"answer": {id: text}, "sp": ...}`."""

from collections.abc import Mapping, Sequence

from .schema import NamedRow, Schema


def _rows(value: object) -> Sequence[object] | None:
    answers = value.get("answer") if isinstance(value, Mapping) else None
    return [{"id": id_, "text": text} for id_, text in answers.items()] if isinstance(answers, Mapping) else None


SCHEMA = Schema(
    name="official",
    about='HotpotQA: {"answer": {id: text}}',
    rows=_rows,
    row=NamedRow,
    example={"answer": {"q1": "Oslo"}, "sp": {"q1": []}},
)
