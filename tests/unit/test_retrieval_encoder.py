"""Which encoder a run uses, and the properties of its vectors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, FastEmbedEncoder, load_encoder
from meta_agent_rag.retrieval.encoders.packaged import PackagedEncoder, _opened
from meta_agent_rag.settings import Settings

TEXTS = ["A cat sleeps.", "The kitten is asleep.", "Income tax law.", "\ud800 lone", "", "long " * 900]


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and a hub on a loopback port without a listener."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # fastembed would wait and try again
    return tmp_path / "hub"


@pytest.mark.parametrize("name", [None, PACKAGED, PackagedEncoder.name])
def test_the_default_is_the_packaged_encoder(name: str | None) -> None:
    choice = load_encoder(Settings.load(), name)
    assert choice.note is None
    assert choice.encoder.name == "all-MiniLM-L6-v2-int8"


def test_vectors_have_unit_length_and_meaning() -> None:
    encoder = PackagedEncoder()
    vectors = encoder.encode_passages(TEXTS)
    cat, kitten, tax, *_ = vectors
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert cat @ kitten > cat @ tax + 0.3
    assert encoder.encode_queries([]).shape == (0, 384)


def test_a_vector_hardly_depends_on_the_texts_around_it() -> None:
    encoder = PackagedEncoder()
    together = encoder.encode_passages(TEXTS * 3)
    for text, row in zip(TEXTS, together, strict=False):
        assert encoder.encode_queries([text])[0] @ row > 0.99, text


def test_a_model_that_fastembed_lists_is_read_from_the_hubs_cache(no_hub: Path) -> None:
    snapshot = no_hub / "models--qdrant--all-MiniLM-L6-v2-onnx" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    _, session = _opened()
    (snapshot / "model.onnx").symlink_to(session._model_path)
    (snapshot / "tokenizer.json").write_bytes((PackagedEncoder.folder / "tokenizer.json").read_bytes())
    (snapshot / "config.json").write_text('{"pad_token_id": 0}')
    (snapshot / "tokenizer_config.json").write_text('{"model_max_length": 256, "pad_token": "[PAD]"}')
    (snapshot / "special_tokens_map.json").write_text("{}")
    encoder = load_encoder(Settings.load(encoder=f"sentence-transformers/{PACKAGED}")).encoder
    assert encoder.name == f"fastembed:sentence-transformers/{PACKAGED}"
    assert encoder.dimension == 384
    ours, theirs = PackagedEncoder().encode_queries(TEXTS[:3]), encoder.encode_queries(TEXTS[:3])
    assert np.einsum("ij,ij->i", ours, theirs) == pytest.approx(1.0, abs=0.01)
    assert isinstance(encoder, FastEmbedEncoder)


@pytest.mark.parametrize("name", ["BAAI/bge-small-en-v1.5", "fastembed:BAAI/bge-small-en-v1.5", "fastembed:no/such"])
def test_a_model_that_the_hub_does_not_give_is_reported_in_one_sentence(name: str, no_hub: Path) -> None:
    encoder = load_encoder(Settings.load(encoder=name)).encoder
    with pytest.raises(SettingsError, match=r"^The encoder '\S+' is neither .*or unset ENCODER\.$"):
        encoder.encode_queries(["x"])


def test_a_gpu_requires_an_encoder_on_torch() -> None:
    with pytest.raises(SettingsError, match=r"ENCODER_DEVICE=cuda requires .*torch:sentence-transformers"):
        load_encoder(Settings.load(encoder_device="cuda"))
    with pytest.raises(SettingsError, match=r"^The setting ENCODER_DEVICE cannot be 'gpu'"):
        Settings.load(["ENCODER_DEVICE=gpu"])


def test_importing_the_layer_loads_no_heavy_library() -> None:
    program = (
        "import sys, meta_agent_rag.retrieval.hybrid, meta_agent_rag.retrieval.encoders.loading;"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'fastembed', 'tantivy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_hashed_vectors_are_the_same_everywhere() -> None:
    """A corpus is searched with them later."""
    root = 3**-0.5
    assert HashEncoder(4).encode_queries(["one two three"])[0] == pytest.approx([root, root, 0.0, -root])
