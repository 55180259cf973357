"""Aliases of answers, in the official `id_aliases.json` of 2WikiMultiHopQA (JSON Lines)."""

from pathlib import Path

from pydantic import BaseModel
from pydantic import ValidationError as RowError

from ...errors import DataFileError
from ...wording import first_fault
from ..dataset import Aliases
from .rows import read_json_rows
from .schema import String, Text


class _Row(BaseModel, frozen=True):
    Q_id: Text
    aliases: tuple[String, ...]
    demonyms: tuple[String, ...] = ()


def read_aliases(path: Path) -> tuple[Aliases, str]:
    """Read aliases and demonyms by answer id, and the file's SHA-256.

    Raises `DataFileError`, which names file, row and field.
    """
    raw = read_json_rows(path)
    aliases: dict[str, tuple[str, ...]] = {}
    for number, value in raw.rows:
        try:
            row = _Row.model_validate(value)
        except RowError as error:
            raise DataFileError(f"{raw.source}: row {number}, {first_fault(error)}.") from None
        aliases[row.Q_id] = (*row.aliases, *row.demonyms)
    return aliases, raw.sha256
