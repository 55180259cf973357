"""Which encoder a run uses, and the properties of its vectors."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.encoders import hub
from meta_agent_rag.retrieval.encoders import loading as encoders
from meta_agent_rag.retrieval.encoders.hub import HubSilence
from meta_agent_rag.retrieval.encoders.loading import PACKAGED, ExportingEncoder, SentenceEncoder, load_encoder
from meta_agent_rag.retrieval.encoders.prefixes import table_prefixes
from meta_agent_rag.settings import Settings

pytestmark = pytest.mark.slow


@pytest.fixture
def packaged() -> Path:
    folder = hub.packaged_folder()
    if folder is None:
        pytest.skip("the packaged encoder is not installed")
    return folder


@pytest.fixture(autouse=True)
def _forget_choices() -> None:
    for remembered in (encoders._choose, encoders._exporting, encoders._computing):
        remembered.cache_clear()


@pytest.fixture
def torch_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference implementation, without an export."""
    monkeypatch.setenv("ENCODER_RUNTIME", "torch")


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hub on a loopback port without a listener, and an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))


class _HubWithoutModels(BaseHTTPRequestHandler):
    asked_with: str | None = None

    def do_GET(self) -> None:
        type(self).asked_with = self.headers.get("Authorization")
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *values: object) -> None:
        """Log nothing."""


@pytest.fixture
def empty_hub(unreachable: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_HubWithoutModels]]:
    """A loopback hub without models."""
    from huggingface_hub import constants

    with HTTPServer(("127.0.0.1", 0), _HubWithoutModels) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield _HubWithoutModels
        server.shutdown()
        thread.join()


def test_a_model_missing_from_the_hub_is_not_replaced(empty_hub: type[_HubWithoutModels]) -> None:
    with pytest.raises(SettingsError, match=r"no encoder 'BAAI/bge-smal'.*HF_TOKEN"):
        load_encoder(Settings.load(hf_token="hf_secret"), "BAAI/bge-smal")
    assert empty_hub.asked_with == "Bearer hf_secret"


@pytest.mark.parametrize("name", [PACKAGED, f"sentence-transformers/{PACKAGED}"])
def test_the_packaged_encoder_is_found_by_its_names(name: str, packaged: Path, tmp_path: Path) -> None:
    choice = load_encoder(Settings.load(encoder_runtime="onnx"), name)
    assert choice.note is None
    assert choice.encoder == ExportingEncoder(name=PACKAGED, folder=packaged, data_dir=tmp_path / "data")
    reference = load_encoder(Settings.load(encoder_runtime="torch"), name)
    assert reference.encoder == SentenceEncoder(name=PACKAGED, folder=packaged)


def test_vectors_have_unit_length_and_meaning(packaged: Path, torch_runtime: None) -> None:
    encoder = load_encoder(Settings.load(encoder=PACKAGED)).encoder
    cat, kitten, tax = encoder.encode_passages(["A cat sleeps.", "The kitten is asleep.", "Income tax law."])
    assert encoder.dimension == 384
    assert cat.dtype == np.float32
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
    assert cat @ kitten > cat @ tax + 0.3
    assert encoder.encode_queries([]).shape == (0, 384)
    assert encoder.encode_queries(["\ud800 lone", ""]).shape == (2, 384)


def test_the_tokenizers_limit_of_128_tokens_is_raised(packaged: Path, torch_runtime: None) -> None:
    encoder = load_encoder(Settings.load(encoder=PACKAGED)).encoder
    left, right = encoder.encode_passages(["word " * 180 + "banana", "word " * 180 + "war"])
    assert left @ right < 0.99


def test_without_hub_and_cache_the_packaged_encoder_is_used_and_reported(packaged: Path, unreachable: None) -> None:
    started = time.monotonic()
    choice = load_encoder(Settings.load(encoder="BAAI/bge-small-en-v1.5"))
    assert time.monotonic() - started < 3.5
    assert choice.encoder.name == PACKAGED
    assert choice.note is not None
    assert "'BAAI/bge-small-en-v1.5'" in choice.note
    assert "\n" not in choice.note
    assert load_encoder(Settings.load(encoder="BAAI/bge-small-en-v1.5")) is choice


def test_an_unresponsive_hub_is_not_retried_for_an_hour(
    packaged: Path, unreachable: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "BAAI/bge-small-en-v1.5"
    asked: list[str] = []
    ask = hub.downloaded_folder

    def counted(name: str, token: str | None) -> Path | None:
        asked.append(name)
        return ask(name, token)

    monkeypatch.setattr(hub, "downloaded_folder", counted)
    load_encoder(Settings.load(encoder=name))
    encoders._choose.cache_clear()
    again = load_encoder(Settings.load(encoder=name))
    assert asked == [name]
    assert again.encoder.name == PACKAGED
    assert again.note is not None
    assert "did not respond 0 min ago (next attempt in 60 min)" in again.note
    file = tmp_path / "data" / "hub-silent.json"
    noted = json.loads(file.read_text())
    outdated: dict[str, object]
    for outdated in ({**noted, "at": noted["at"] - 3601}, {**noted, "at": noted["at"] + 60}, {**noted, "hub": "x"}, {}):
        file.write_text(json.dumps(outdated))
        assert HubSilence(file=file).minutes() is None
    encoders._choose.cache_clear()
    load_encoder(Settings.load(encoder=name))
    assert asked == [name, name]


def test_a_hub_that_responds_is_not_remembered_as_unresponsive(
    empty_hub: type[_HubWithoutModels], tmp_path: Path
) -> None:
    silence = HubSilence(file=tmp_path / "silent.json")
    silence.note(silent=True)
    assert silence.minutes() == 0
    silence.note(silent=False)
    assert silence.minutes() is None
    HubSilence(file=tmp_path / "silent.json" / "below").note(silent=True)


def test_an_unavailable_encoder_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, unreachable: None) -> None:
    monkeypatch.setattr(hub, "packaged_folder", lambda: None)
    with pytest.raises(SettingsError, match=r"meta-agent-rag\[embedded\]"):
        load_encoder(Settings.load(), PACKAGED)


def test_a_hanging_name_resolver_is_not_waited_for() -> None:
    started = time.monotonic()
    assert isinstance(hub._attempt(lambda: time.sleep(1), 0.1), TimeoutError)
    assert time.monotonic() - started < 0.9


def test_a_value_that_is_neither_folder_nor_name_is_rejected(unreachable: None) -> None:
    with pytest.raises(SettingsError, match="neither a folder"):
        load_encoder(Settings.load(), "./no/such/folder")


def test_a_local_folder_is_loaded(packaged: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").symlink_to(packaged)
    choice = load_encoder(Settings.load(), str(tmp_path / "copy"))
    assert choice.note is None
    assert choice.encoder.name == str(packaged.resolve())


def test_a_folder_without_weights_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SettingsError, match="no readable encoder"):
        load_encoder(Settings.load(), str(tmp_path)).encoder.encode_queries(["x"])


@pytest.mark.parametrize(
    ("name", "query", "passage"),
    [
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("/models/bge-large-en", "Represent this sentence for searching relevant passages: ", ""),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
        (PACKAGED, "", ""),
    ],
)
def test_prefixes_depend_on_the_model_name(name: str, query: str, passage: str) -> None:
    assert table_prefixes(name) == (query, passage)


class _Model:
    def __init__(self, prompts: dict[str, str]) -> None:
        self.prompts = prompts


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ({"query": "ask: ", "document": "doc: "}, ("ask: ", "doc: ")),
        ({"query": "", "document": ""}, ("query: ", "passage: ")),
    ],
)
def test_the_models_own_prompts_take_precedence_over_the_table(
    prompts: dict[str, str], expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "_model", lambda folder, device: _Model(prompts))
    assert SentenceEncoder(name="intfloat/e5-base-v2", folder=Path())._prefixes() == expected


def test_importing_the_layer_loads_no_heavy_library() -> None:
    program = (
        "import sys, meta_agent_rag.retrieval.hybrid, meta_agent_rag.retrieval.encoders.loading;"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'onnx', 'tantivy', 'qdrant_edge'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
