"""One object `{id: answer}`."""

from collections.abc import Mapping, Sequence

from .schema import NamedRow, Schema


def _rows(value: object) -> Sequence[object] | None:
    if not isinstance(value, Mapping) or not value:
        return None
    if not all(text is None or isinstance(text, str) for text in value.values()):
        return None
    return [{"id": id_, "text": text} for id_, text in value.items()]


SCHEMA = Schema(name="by_id", about="{id: answer}", rows=_rows, row=NamedRow, example={"q1": "Oslo"})
