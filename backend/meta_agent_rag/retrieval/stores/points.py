"""Shared by the two Qdrant stores: point ids, payloads, and shape checks."""

from typing import Any
from uuid import UUID, uuid5

from ..passage import Passage
from ..vectors import FloatMatrix, FloatVector
from .rows import Row, from_key, to_key, to_record

_NAMESPACE = UUID("6f1d0c86-3f55-5d0e-9a53-2d7c0f0f4a11")
MARKER = uuid5(_NAMESPACE, "marker of the collection")
"""A point without a vector that holds the collection's version."""


def point_id(passage_id: str, since: int) -> UUID:
    """The same id for the same passage and version, so that a batch sent twice is stored once."""
    return uuid5(_NAMESPACE, f"{since} {to_key(passage_id)}")


def payload_of(passage: Passage, since: int) -> dict[str, str | int]:
    """The data stored with a passage's vector."""
    keys = {"id": to_key(passage.id), "doc_id": to_key(passage.doc_id)}
    return {**keys, "since": since, "passage": to_record(passage)}


def row_of(score: float, payload: dict[str, Any]) -> Row:
    """A search's row; the score is a cosine, which rounding may raise above 1."""
    return Row(min(1.0, max(-1.0, score)), from_key(payload["id"]), payload["passage"])


def check_matrix(vectors: FloatMatrix, rows: int, dimension: int) -> None:
    """Raise `ValueError` unless the shape is (rows, dimension)."""
    if vectors.shape != (rows, dimension):
        raise ValueError(f"vectors have the shape {vectors.shape}; {(rows, dimension)} is needed")


def check_vector(vector: FloatVector, dimension: int) -> None:
    """Raise `ValueError` unless the shape is (dimension,)."""
    if vector.shape != (dimension,):
        raise ValueError(f"the vector has the shape {vector.shape}; ({dimension},) is needed")
