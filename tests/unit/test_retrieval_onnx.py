"""The encoder on onnxruntime: the same vectors, an export that is complete or absent, torch as the fallback."""

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.errors import StorageError
from meta_agent_rag.retrieval.encoders import hub
from meta_agent_rag.retrieval.encoders import loading as encoders
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, ExportingEncoder, SentenceEncoder, load_encoder
from meta_agent_rag.retrieval.encoders.model_config import stated_dimension
from meta_agent_rag.retrieval.encoders.onnx_encoder import FACTS_FILE, MODEL_FILE, OnnxEncoder
from meta_agent_rag.retrieval.encoders.onnx_export import LARGEST_DISTANCE, export_model
from meta_agent_rag.retrieval.encoders.onnx_place import ExportPlace, export_place
from meta_agent_rag.settings import Settings

FOLDER = hub.packaged_folder()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(FOLDER is None, reason="the packaged encoder is not installed")]


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Clear cached encoders, as if every test ran in a separate process."""
    yield
    for remembered in (encoders._choose, encoders._exporting, encoders._computing):
        remembered.cache_clear()


def tiny(folder: Path, *, pooling: str = "mean", dense: bool = False, seed: int = 1) -> Path:
    """An encoder of two layers with random weights, quick to export."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(str(FOLDER))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.5,
    )
    inner = folder / "inner"
    BertModel(config).save_pretrained(inner)
    tokenizer.save_pretrained(inner)
    modules = [Transformer(str(inner), max_seq_length=24), Pooling(32, pooling_mode=pooling)]
    modules += [Dense(32, 12)] if dense else []
    prompts = {"query": "ask: ", "document": "read: "}
    SentenceTransformer(modules=[*modules, Normalize()], prompts=prompts).save_pretrained(str(folder / "model"))
    shutil.rmtree(inner)
    return folder / "model"


def reference_and_place(folder: Path, data_dir: Path) -> tuple[SentenceEncoder, ExportPlace]:
    return SentenceEncoder(name="tiny", folder=folder), export_place("tiny", folder, data_dir)


@pytest.fixture(scope="module")
def exported(exported_encoders: Path) -> Path:
    """A data folder with an export of the packaged encoder."""
    assert FOLDER is not None
    place = export_place(PACKAGED, FOLDER, exported_encoders.parent)
    if not place.ready:
        assert export_model(encoders._model(FOLDER), SentenceEncoder(name=PACKAGED, folder=FOLDER), place) is None
    return exported_encoders.parent


TEXTS = [
    *(f"Passage {number} is about {'very ' * number}long rivers." for number in range(18)),
    "",
    "\x00",
    "\ud800 lone",
    "東京 🙂 Zürich e\u0301",
    "word " * 180 + "banana",
    "word " * 3000,
]


def test_vectors_match_those_of_torch(exported: Path) -> None:
    assert FOLDER is not None
    torch = SentenceEncoder(name=PACKAGED, folder=FOLDER)
    onnx = ExportingEncoder(name=PACKAGED, folder=FOLDER, data_dir=exported)
    assert isinstance(onnx.computing(), OnnxEncoder)
    assert (onnx.name, onnx.dimension) == (torch.name, torch.dimension) == (PACKAGED, 384)
    for texts in (TEXTS, TEXTS[:1]):
        expected, found = torch.encode_passages(texts), onnx.encode_passages(texts)
        assert found.dtype == np.float32
        assert np.max(1 - np.sum(expected * found, axis=1)) < LARGEST_DISTANCE
        assert np.linalg.norm(found, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert onnx.encode_queries([]).shape == (0, 384)


def test_many_threads_share_one_encoder(exported: Path) -> None:
    assert FOLDER is not None
    encoder = ExportingEncoder(name=PACKAGED, folder=FOLDER, data_dir=exported)
    expected = encoder.encode_passages(TEXTS[:20])
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.encode_passages(TEXTS[:20]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for vectors in found:
        assert vectors == pytest.approx(expected, abs=1e-5)


def test_a_later_process_needs_no_torch(exported: Path) -> None:
    program = (
        "import sys; from meta_agent_rag.settings import Settings;"
        "from meta_agent_rag.retrieval.encoders.loading import load_encoder;"
        "made = [load_encoder(Settings.load(), name).encoder for name in (None, 'all-MiniLM-L6-v2')];"
        "print([encoder.encode_queries(['Who?']).shape for encoder in made], made[0] == made[1]);"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    )
    settings = {"MARAG_DATA_DIR": str(exported), "ENCODER": PACKAGED, "ENCODER_RUNTIME": "onnx"}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[(1, 384), (1, 384)] True", "[]"]
    assert done.stderr == ""


def test_a_setting_keeps_torch(tmp_path: Path) -> None:
    assert FOLDER is not None
    encoder = load_encoder(Settings.load(encoder_runtime="torch", marag_data_dir=tmp_path / "own"), PACKAGED).encoder
    assert encoder == SentenceEncoder(name=PACKAGED, folder=FOLDER)
    encoder.encode_queries(["x"])
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(("pooling", "dense"), [("mean", False), ("cls", False), ("max", False), ("mean", True)])
def test_modules_after_the_transformer_are_part_of_the_exported_graph(
    pooling: str, dense: bool, tmp_path: Path
) -> None:
    folder = tiny(tmp_path, pooling=pooling, dense=dense)
    torch, _ = reference_and_place(folder, tmp_path)
    encoder = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path)
    assert encoder.dimension == stated_dimension(folder) == (12 if dense else 32)
    assert isinstance(encoder.computing(), OnnxEncoder)
    for ours, theirs in (
        (encoder.encode_queries(TEXTS), torch.encode_queries(TEXTS)),
        (encoder.encode_passages(TEXTS), torch.encode_passages(TEXTS)),
    ):
        assert np.max(1 - np.sum(ours * theirs, axis=1)) < LARGEST_DISTANCE
    assert not np.allclose(encoder.encode_queries(["x"]), encoder.encode_passages(["x"])), (
        "the model has its own prompts"
    )


def test_a_changed_model_is_exported_again_and_replaces_the_earlier_export(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "one")
    earlier = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path).encode_queries(["x"])
    (before,) = (tmp_path / "encoders").iterdir()
    shutil.copytree(tiny(tmp_path / "two", seed=2), folder, dirs_exist_ok=True)
    _forget_computing()
    later = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path).encode_queries(["x"])
    (after,) = (tmp_path / "encoders").iterdir()
    assert after != before
    assert not np.allclose(earlier, later)


def _forget_computing() -> None:
    encoders._computing.cache_clear()
    encoders._loaded.cache_clear()


def test_concurrent_exports_leave_one_complete_export(tmp_path: Path) -> None:
    folder = tiny(tmp_path)
    torch, place = reference_and_place(folder, tmp_path / "own")
    model = encoders._model(folder)
    with place.building() as first:
        assert export_model(model, torch, place) is None
        shutil.copytree(place.path, first, dirs_exist_ok=True)
        place.install(first)
    assert [path.name for path in place.path.parent.iterdir()] == [place.path.name]
    assert OnnxEncoder(name="tiny", export=place.path).encode_queries(["x"]).shape == (1, 32)


def test_a_partial_export_after_a_kill_is_not_used(tmp_path: Path) -> None:
    folder = tiny(tmp_path)
    torch, place = reference_and_place(folder, tmp_path / "own")
    program = (
        "import os, sys; from pathlib import Path;"
        "from meta_agent_rag.retrieval.encoders.onnx_place import export_place;"
        "place = export_place('tiny', Path(sys.argv[1]), Path(sys.argv[2]));"
        "building = place.building(); folder = building.__enter__();"
        "(folder / 'model.onnx').write_bytes(b'half');"
        "(folder / 'encoder.json').write_text('{}');"
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(folder), str(tmp_path / "own")], check=False)
    (left,) = place.path.parent.iterdir()
    assert not place.ready
    os.utime(left, (0, 0))
    assert export_model(encoders._model(folder), torch, place) is None
    assert [path.name for path in place.path.parent.iterdir()] == [place.path.name]


@pytest.mark.parametrize("file", [MODEL_FILE, FACTS_FILE])
def test_a_damaged_export_is_rebuilt(file: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tiny(tmp_path)
    encoder = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path)
    expected = encoder.encode_queries(["x"])
    place = export_place("tiny", folder, tmp_path)
    damaged = (place.path / file).read_bytes()[:100]
    (place.path / file).write_bytes(damaged)
    with pytest.raises(StorageError, match="delete that folder"):
        OnnxEncoder(name="tiny", export=place.path)
    _forget_computing()
    assert encoder.encode_queries(["x"]) == pytest.approx(expected, abs=1e-5)
    assert "exported again" in caplog.text
    assert (place.path / file).read_bytes() != damaged


def test_a_deviating_export_is_rejected_recorded_and_not_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, other = tiny(tmp_path / "one"), tiny(tmp_path / "two", seed=2)
    torch, place = reference_and_place(other, tmp_path)
    reason = export_model(encoders._model(folder), torch, place)
    assert reason is not None
    assert "differ by a cosine distance" in reason
    assert place.refusal() == reason
    assert not place.ready
    caplog.clear()
    encoder = ExportingEncoder(name="tiny", folder=other, data_dir=tmp_path)
    assert encoder.computing() == torch
    assert caplog.records == []
    noted = json.loads(place._refusal_file.read_text())
    place._refusal_file.write_text(json.dumps({**noted, "versions": {"torch": "0"}}))
    _forget_computing()
    assert isinstance(encoder.computing(), OnnxEncoder), "with other library versions the export is retried"


def test_a_read_only_data_folder_falls_back_to_torch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    folder = tiny(tmp_path)
    encoder = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path / "file")
    with caplog.at_level(logging.WARNING):
        assert encoder.encode_queries(["x", "y"]).shape == (2, 32)
        encoder.encode_queries(["x"])
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("meta_agent_rag")]
    assert len(warnings) == 1
    assert "stays on torch" in warnings[0]


@pytest.mark.parametrize("modules", ["", "{}", "[]", '[{"type": "x.Unknown", "path": ""}]', "[1]"])
def test_an_ambiguous_configuration_states_no_dimension(modules: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(modules)
    assert stated_dimension(tmp_path) is None
    assert stated_dimension(tmp_path / "none") is None


def test_a_truncated_dimension_is_respected(tmp_path: Path) -> None:
    folder = tiny(tmp_path)
    own = folder / "config_sentence_transformers.json"
    own.write_text(json.dumps({**json.loads(own.read_text()), "truncate_dim": 8}))
    assert stated_dimension(folder) == 8
    encoder = ExportingEncoder(name="tiny", folder=folder, data_dir=tmp_path)
    assert encoder.encode_queries(["x"]).shape == (1, 8)
