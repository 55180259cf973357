"""What an encoder is: texts to unit vectors."""

from collections.abc import Sequence
from typing import Protocol

from ..vectors import FloatMatrix


class Encoder(Protocol):
    """Turns texts into float32 rows of unit length, shape (n, `dimension`).

    `name` identifies the vectors: two encoders of one name must give the same ones, since a corpus
    built with one is searched with the other. Questions and passages are told apart because many
    encoders want different words in front of them.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix: ...

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix: ...
