"""Dense and lexical stores, one file each; a file that exports `DENSE` or `LEXICAL` is discovered automatically."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ...discovery import by_name, exported
from .store import DenseBackend, LexicalBackend


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The known stores of both kinds, by name."""

    dense: Mapping[str, DenseBackend]
    lexical: Mapping[str, LexicalBackend]


@cache
def discover_stores() -> Stores:
    """Every store of this folder, without loading the stores' libraries. Raises `DuplicateNameError`."""
    return Stores(
        dense=by_name(exported(__name__, "DENSE", DenseBackend), "stores"),
        lexical=by_name(exported(__name__, "LEXICAL", LexicalBackend), "stores"),
    )
