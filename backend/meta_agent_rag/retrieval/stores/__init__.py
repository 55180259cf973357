"""Dense and lexical stores, one file each; a file that exports `DENSE` or `LEXICAL` is discovered automatically."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...discovery import by_name, exported
from .store import StoreBackend


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The known stores of both kinds, by name."""

    dense: Mapping[str, StoreBackend[Any]]
    lexical: Mapping[str, StoreBackend[Any]]


@cache
def discover_stores() -> Stores:
    """Every store of this folder, without loading the stores' libraries. Raises `DuplicateNameError`."""
    return Stores(
        dense=by_name(exported(__name__, "DENSE", StoreBackend), "stores"),
        lexical=by_name(exported(__name__, "LEXICAL", StoreBackend), "stores"),
    )
