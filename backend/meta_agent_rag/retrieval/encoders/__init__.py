"""Encoders: from texts to unit vectors."""

from collections.abc import Sequence
from typing import Protocol

from ..vectors import FloatMatrix


class Encoder(Protocol):
    """Turns texts into float32 rows of unit length, shape (n, `dimension`).

    `name` identifies the vectors: two encoders with the same name must give the same vectors, because a corpus
    built with one is searched with the other. Questions and passages are distinguished because many
    encoders require different prefixes for them.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix: ...

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix: ...
