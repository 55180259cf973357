"""The hashing encoder, which needs no model."""

import subprocess
import sys

import numpy as np

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder


def test_equal_texts_have_equal_vectors_and_shared_words_raise_similarity() -> None:
    same, again, near, far = HashEncoder(256).encode_passages(
        ["Ada wrote programs", "ada WROTE, programs!", "Ada wrote letters", "volcanic islands erupt"]
    )
    assert same @ again == np.float32(1.0) or abs(same @ again - 1) < 1e-6
    assert same @ near > same @ far + 0.3


def test_vectors_are_the_same_in_another_process() -> None:
    program = (
        "from meta_agent_rag.retrieval.encoders.hashing import HashEncoder;"
        "print(HashEncoder(16).encode_queries(['one two three']).tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == HashEncoder(16).encode_queries(["one two three"]).tobytes().hex()
