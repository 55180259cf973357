"""The hashing encoder, which needs no model."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.retrieval.encoders.encoder import Encoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder


@given(st.lists(st.text(st.characters(), max_size=60), max_size=5), st.integers(1, 80))
def test_rows_have_unit_length(texts: list[str], dimension: int) -> None:
    encoder: Encoder = HashEncoder(dimension)
    matrix = encoder.encode_queries(texts)
    assert matrix.shape == (len(texts), dimension)
    assert matrix.dtype == np.float32
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1.0, atol=1e-5)
    assert np.array_equal(matrix, encoder.encode_passages(texts))


def test_equal_texts_have_equal_vectors_and_shared_words_raise_similarity() -> None:
    same, again, near, far = HashEncoder(256).encode_passages(
        ["Ada wrote programs", "ada WROTE, programs!", "Ada wrote letters", "volcanic islands erupt"]
    )
    assert same @ again == np.float32(1.0) or abs(same @ again - 1) < 1e-6
    assert same @ near > same @ far + 0.3


def test_texts_without_words_share_one_vector() -> None:
    matrix = HashEncoder().encode_queries(["", "?!", " \n"])
    assert matrix[:, 0].tolist() == [1.0, 1.0, 1.0]


def test_vectors_are_the_same_in_another_process() -> None:
    program = (
        "from meta_agent_rag.retrieval.encoders.hashing import HashEncoder;"
        "print(HashEncoder(16).encode_queries(['one two three']).tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == HashEncoder(16).encode_queries(["one two three"]).tobytes().hex()
