"""The optional cross-encoder, tested with a tiny one of random weights, since tests download nothing."""

import json
import random
from pathlib import Path

import pytest

from meta_agent_rag.errors import SettingsError
from meta_agent_rag.retrieval.encoders.packaged import PackagedEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.reranker import load_reranker
from meta_agent_rag.settings import Settings

TOKENIZER = PackagedEncoder.folder / "tokenizer.json"


def tiny(folder: Path, labels: int) -> Path:
    """A cross-encoder of two layers with random but reproducible weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(7)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER), pad_token="[PAD]", unk_token="[UNK]")
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.5,
    )
    config.num_labels = labels
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("reranker"), labels=1)


def passage(text: str, title: str = "") -> Passage:
    return Passage(id=text, doc_id=text, title=title, text=text)


WORDS = ["river", "town", "war", "tax", "banana", "cat", "novel", "director", "bridge", "season"]
PASSAGES = [passage(" ".join(random.Random(seed).choices(WORDS, k=3 + seed)), f"Title {seed}") for seed in range(40)]


def test_no_reranker_is_used_by_default() -> None:
    assert load_reranker(Settings.load()) is None


@pytest.mark.slow
async def test_scores_follow_their_passages_in_any_order_and_batch(model: Path) -> None:
    reranker = load_reranker(Settings.load(reranker=str(model)))
    assert reranker is not None
    scores = await reranker.rerank("Who directed the novel?", PASSAGES)
    assert all(type(score) is float for score in scores)
    assert len({round(score, 6) for score in scores}) > 20, "a model with equal scores would test nothing"
    turned = await reranker.rerank("Who directed the novel?", PASSAGES[::-1])
    assert turned[::-1] == pytest.approx(scores, abs=1e-5)
    other = await reranker.rerank("Which tax?", PASSAGES)
    assert other != pytest.approx(scores, abs=1e-3), "scores depend on the question too"
    untitled = [passage(one.text) for one in PASSAGES]
    assert await reranker.rerank("Who directed the novel?", untitled) != pytest.approx(scores, abs=1e-3)


@pytest.mark.slow
async def test_unusual_input_is_handled(model: Path) -> None:
    reranker = load_reranker(Settings.load(reranker=str(model)))
    assert reranker is not None
    assert await reranker.rerank("x", []) == []
    odd = [passage("\x00"), passage("\ud800 lone"), passage(""), passage("long " * 5000)]
    assert len(await reranker.rerank("\ud800 and \x00", odd)) == 4


@pytest.mark.slow
async def test_a_folder_without_weights_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))
    reranker = load_reranker(Settings.load(reranker=str(tmp_path)))
    assert reranker is not None
    with pytest.raises(SettingsError, match="cannot be loaded"):
        await reranker.rerank("x", [passage("one")])


@pytest.mark.slow
async def test_another_kind_of_model_is_rejected(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(
        BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    ).save_pretrained(tmp_path)
    tokenizer = tiny(tmp_path / "tiny", labels=1)
    for file in tokenizer.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    reranker = load_reranker(Settings.load(reranker=str(tmp_path)))
    assert reranker is not None
    with pytest.raises(SettingsError, match="not a cross-encoder"):
        await reranker.rerank("x", [passage("one")])


async def test_an_unavailable_reranker_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # fastembed would wait and try again
    for name in ("cross-encoder/ms-marco", "Xenova/ms-marco-MiniLM-L-6-v2"):
        reranker = load_reranker(Settings.load(reranker=name))
        assert reranker is not None
        with pytest.raises(SettingsError, match=r"^The reranker '.*' is neither a folder .*unset RERANKER\.$"):
            await reranker.rerank("x", [passage("one")])


def test_a_folder_that_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(SettingsError, match=r"^RERANKER '\./no/such' is not a folder; .*unset it\.$"):
        load_reranker(Settings.load(reranker="./no/such"))
