"""Dense and lexical stores, one file each; a file that exports `DENSE` or `LEXICAL` is discovered automatically."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from ... import discovery
from ...discovery import exported
from .protocols import DenseBackend, DenseStore, LexicalBackend, LexicalStore, StorePlace

__all__ = [
    "Backend",
    "DenseBackend",
    "DenseStore",
    "LexicalBackend",
    "LexicalStore",
    "StorePlace",
    "Stores",
    "by_name",
    "discover_stores",
]

Backend = TypeVar("Backend", DenseBackend, LexicalBackend)


@dataclass(frozen=True, kw_only=True)
class Stores:
    """The known stores of both kinds, by name."""

    dense: Mapping[str, DenseBackend]
    lexical: Mapping[str, LexicalBackend]


@cache
def discover_stores() -> Stores:
    """Every store of this folder, without loading the stores' libraries. Raises `DuplicateNameError`."""
    return Stores(
        dense=by_name(exported(__name__, "DENSE", DenseBackend)),
        lexical=by_name(exported(__name__, "LEXICAL", LexicalBackend)),
    )


def by_name(backends: Iterable[Backend]) -> Mapping[str, Backend]:
    """An immutable mapping from names to backends; a duplicate name raises `DuplicateNameError`."""
    return discovery.by_name(backends, "stores")
