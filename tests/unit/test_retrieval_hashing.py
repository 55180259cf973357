"""The hashing encoder, which needs no model."""

import numpy as np
import pytest

from meta_agent_rag.retrieval.encoders.hashing import HashEncoder


def test_equal_texts_have_equal_vectors_and_shared_words_raise_similarity() -> None:
    same, again, near, far = HashEncoder(256).encode_passages(
        ["Ada wrote programs", "ada WROTE, programs!", "Ada wrote letters", "volcanic islands erupt"]
    )
    assert same @ again == np.float32(1.0) or abs(same @ again - 1) < 1e-6
    assert same @ near > same @ far + 0.3


def test_vectors_are_the_same_everywhere() -> None:
    """A corpus is searched with them later."""
    root = 3**-0.5
    assert HashEncoder(4).encode_queries(["one two three"])[0] == pytest.approx([root, root, 0.0, -root])
