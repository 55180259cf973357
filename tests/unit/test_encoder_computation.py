"""ENCODER_DEVICE and ENCODER_BATCH: where and in which batches vectors are computed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.run.provenance import changed_settings, recorded_settings
from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.corpus.catalogue import DocumentRecord
from meta_agent_rag.retrieval.corpus.editing import edit_corpus
from meta_agent_rag.retrieval.encoders import cluster, hub
from meta_agent_rag.retrieval.encoders import loading as encoders
from meta_agent_rag.retrieval.encoders.cluster import ClusterEncoder, Node
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, ExportingEncoder, SentenceEncoder, load_encoder
from meta_agent_rag.retrieval.encoders.onnx_encoder import OnnxEncoder
from meta_agent_rag.retrieval.opening import open_cluster_encoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.vectors import FloatMatrix
from meta_agent_rag.settings import Settings

TEXTS = [f"The harbour of town {number} has boats." for number in range(9)]


@pytest.fixture(autouse=True)
def _packaged() -> None:
    if hub.packaged_folder() is None:
        pytest.skip("the packaged encoder is not installed")


@pytest.fixture
def cuda_gpus(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A machine with this many CUDA GPUs, whatever this one has."""
    import torch

    count: int = request.param
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


class RecordingModel:
    """A sentence-transformers model that records its batch sizes."""

    prompts: dict[str, str] = {}  # noqa: RUF012  # as in the library

    def __init__(self) -> None:
        self.batches: list[int] = []

    def encode(self, texts: list[str], *, batch_size: int, **_: Any) -> FloatMatrix:
        self.batches.append(batch_size)
        return np.ones((len(texts), 2), dtype=np.float32)


@pytest.mark.parametrize("value", ["gpu", "cuda:", "cuda:first", "cuda:1,cuda:2"])
def test_a_wrong_device_is_rejected_in_one_sentence(value: str) -> None:
    with pytest.raises(SettingsError, match=r"^The setting ENCODER_DEVICE cannot be '.*': .*cuda:1 .*mps\.$"):
        Settings.load([f"ENCODER_DEVICE={value}"])


@pytest.mark.parametrize("value", ["0", "-1", "4097", "many"])
def test_a_wrong_batch_is_rejected(value: str) -> None:
    with pytest.raises(SettingsError, match=r"^The setting ENCODER_BATCH cannot be "):
        Settings.load([f"ENCODER_BATCH={value}"])


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_onnxruntime_has_no_gpu(device: str) -> None:
    with pytest.raises(SettingsError, match=rf"ENCODER_DEVICE={device} requires ENCODER_RUNTIME=torch"):
        load_encoder(Settings.load(encoder=PACKAGED, encoder_device=device, encoder_runtime="onnx"))


@pytest.mark.parametrize(
    ("cuda_gpus", "device", "found"),
    [(0, "cuda", "no CUDA GPU"), (0, "cuda:1", "no CUDA GPU"), (1, "cuda:1", "only 1 CUDA GPU,")],
    indirect=["cuda_gpus"],
)
@pytest.mark.usefixtures("cuda_gpus")
def test_a_missing_gpu_is_reported_with_the_next_action(device: str, found: str) -> None:
    with pytest.raises(SettingsError, match=rf"{device} is not available.*{found}.*set ENCODER_DEVICE=auto"):
        load_encoder(Settings.load(encoder=PACKAGED, encoder_device=device, encoder_runtime="torch"))


@pytest.mark.parametrize("cuda_gpus", [2], indirect=True)
@pytest.mark.usefixtures("cuda_gpus")
@pytest.mark.parametrize(("device", "given"), [("auto", None), ("cpu", "cpu"), ("CUDA:1", "cuda:1")])
def test_torch_gets_the_device(monkeypatch: pytest.MonkeyPatch, device: str, given: str | None) -> None:
    asked: list[str | None] = []

    def loaded(folder: Path, device: str | None) -> RecordingModel:
        asked.append(device)
        return RecordingModel()

    monkeypatch.setattr(encoders, "_loaded", loaded)
    settings = Settings.load(encoder=PACKAGED, encoder_device=device, encoder_runtime="torch")
    load_encoder(settings).encoder.encode_passages(TEXTS)
    assert set(asked) == {given}


@pytest.mark.parametrize(("batch", "expected"), [(None, 32), (7, 7)])
def test_torch_gets_the_batch(monkeypatch: pytest.MonkeyPatch, batch: int | None, expected: int) -> None:
    model = RecordingModel()
    monkeypatch.setattr(encoders, "_loaded", lambda folder, device: model)
    settings = Settings.load(encoder=PACKAGED, encoder_batch=batch, encoder_runtime="torch")
    load_encoder(settings).encoder.encode_passages(TEXTS)
    assert model.batches == [expected]


@pytest.mark.parametrize(("batch", "runs"), [(None, [4, 4, 1]), (5, [5, 4]), (2000, [9])])
def test_onnxruntime_gets_the_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch: int | None, runs: list[int]
) -> None:
    settings = Settings.load(encoder=PACKAGED, encoder_batch=batch, encoder_device="cpu", encoder_runtime="onnx")
    chosen = load_encoder(settings).encoder
    assert isinstance(chosen, ExportingEncoder)
    assert (chosen.computation.batch, chosen.computation.device) == (batch, "cpu")
    sizes: list[int] = []

    class Tokens:
        ids = type_ids = (1, 2)

    class Tokenizer:
        def encode_batch(self, texts: list[str]) -> list[Tokens]:
            return [Tokens() for _ in texts]

    class Session:
        def run(self, _: None, feed: dict[str, Any]) -> tuple[FloatMatrix]:
            sizes.append(len(feed["input_ids"]))
            return (np.ones((len(feed["input_ids"]), 2), dtype=np.float32),)

    (tmp_path / "encoder.json").write_text(
        '{"dimension": 2, "inputs": ["input_ids"], "pad_id": 0, "pad_type_id": 0, "pad_left": false, '
        '"query_prompt": "", "passage_prompt": "", "source": ""}'
    )
    monkeypatch.setattr(f"{OnnxEncoder.__module__}._opened", lambda export: (Tokenizer(), Session()))
    OnnxEncoder(name="tiny", export=tmp_path, batch=chosen.computation.batch).encode_passages(TEXTS)
    assert sorted(sizes, reverse=True) == runs


async def test_a_corpus_is_encoded_in_groups_of_at_least_one_batch() -> None:
    sizes: list[int] = []

    class Recording(HashEncoder):
        def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
            sizes.append(len(texts))
            return super().encode_passages(texts)

    passages = [Passage(id=f"p{n}", doc_id="d", title="", text=f"town {n}") for n in range(1300)]
    for batch in (None, 600):
        settings = Settings.load(encoder="hash-64", encoder_batch=batch)
        async with edit_corpus(settings, f"c-{batch or 0}", AsyncEncoder(Recording()), chunker="none") as editor:
            await editor.put(DocumentRecord(id="d", source="d", title="D", kind="passages", content_hash="1"), passages)
    assert sizes == [512, 512, 276, 600, 600, 100]


def test_device_and_batch_do_not_belong_to_an_experiment() -> None:
    begun, resumed = (
        Settings.load(encoder_device=device, encoder_batch=batch).model_dump(mode="json")
        for device, batch in (("auto", None), ("cpu", 64))
    )
    assert changed_settings(begun, resumed) == []


def test_a_record_does_not_choose_the_device() -> None:
    recorded = Settings.load(encoder_device="cuda", encoder_batch=64).model_dump(mode="json")
    replayed = recorded_settings({"settings": recorded, "provider": {"name": "deepseek"}})
    assert (replayed.encoder_device, replayed.encoder_batch) == ("auto", None)


def test_a_node_gets_device_and_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENCODER_BATCH", "9")
    monkeypatch.setenv("ENCODER_DEVICE", "mps")
    for device, batch in (("cpu", 64), ("auto", None)):
        node = Node(encoder=PACKAGED, runtime="torch", name=PACKAGED, device=device, batch=batch)
        encoder = cluster._loaded(node)
        assert isinstance(encoder, SentenceEncoder)
        assert (encoder.computation.device, encoder.computation.batch) == (device, batch)


def test_a_gpu_number_is_rejected_on_a_cluster() -> None:
    settings = Settings.load(encoder=PACKAGED, encoder_runtime="torch", encoder_device="cuda:1")
    with pytest.raises(SettingsError, match=r"cuda:1 cannot be used with --engine ray.*set cuda\."):
        open_cluster_encoder(settings, "ray")


@pytest.mark.parametrize("cuda_gpus", [0], indirect=True)
@pytest.mark.usefixtures("cuda_gpus")
def test_a_cluster_without_gpus_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine that starts the ingestion needs no GPU, only a node."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(cluster, "join", lambda wanted: 1)
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 1}}])
    settings = Settings.load(encoder=PACKAGED, encoder_runtime="torch", encoder_device="cuda")
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0})
    with pytest.raises(SettingsError, match="no node of the Ray cluster has a GPU"):
        open_cluster_encoder(settings, "ray")
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0, "GPU": 2.0})
    open_cluster_encoder(settings, "ray")
    assert ClusterEncoder(HashEncoder(), settings)._node.device == "cuda"


def test_nodes_with_gpus_can_be_told_to_use_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(cluster, "join", lambda wanted: 1)
    monkeypatch.setattr(ray, "nodes", lambda: [{"Alive": True, "Resources": {"CPU": 1}}])
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 1.0, "GPU": 8.0})
    settings = Settings.load(encoder=PACKAGED, encoder_runtime="torch")
    tasks = {
        device: ClusterEncoder(HashEncoder(), settings.model_copy(update={"encoder_device": device}))._tasks
        for device in ("auto", "cpu")
    }
    assert tasks == {"auto": 8, "cpu": 1}
