"""The command `marag`, as a user sees it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from meta_agent_rag.cli.main import app
from meta_agent_rag.testing.scripted import ScriptedModel
from meta_agent_rag.testing.server import helpful, loopback_server


def marag(*words: str, **env: str) -> Result:
    """Run `marag` in this process, with an encoder that needs no model."""
    return CliRunner().invoke(app, [*words], env={"ENCODER": "hash-64", "MONITOR_ENCODER": "hash-64", **env})


def deepseek(base_url: str) -> dict[str, str]:
    """The environment of a loopback DeepSeek."""
    return {"LLM_PROVIDER": "deepseek", "LLM_BASE_URL": base_url, "DEEPSEEK_API_KEY": "sk-planted"}


def test_ask_shows_rounds_and_sources() -> None:
    with loopback_server(helpful()) as server:
        result = marag("ask", "Who", "designed", "the", "bridge?", "--trace", **deepseek(server.base_url))
    assert result.exit_code == 0, result.output
    assert "Round 0 (chosen)" in result.stdout
    assert "Monitor. accepts it because no better answer was found" in result.stdout
    assert "[1] " in result.stdout


@pytest.mark.parametrize("provider", ["embedded", "deepseek"])
def test_the_packaged_model_is_announced_with_others(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meta_agent_rag.llm.opening._stand_in", lambda _: ScriptedModel({}))
    env = {"LLM_PROVIDER": provider, "DEEPSEEK_API_KEY": "none"}
    plain = marag("ask", "Who designed the Pennant Bridge?", **env)
    assert plain.exit_code == 0, plain.output
    assert ("`marag models get qwen2.5-1.5b`" in plain.stderr) is (provider == "embedded")
    grounded = marag("ask", "Who designed the Pennant Bridge?", "--grounded", "--json", **env)
    assert json.loads(grounded.stdout)["refused"]
    assert "marag models get" not in grounded.stderr


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["ask", " "], {}, "The question is empty; write one."),
        (["ask", "Who?", "--corpus", "nope"], {}, "There is no corpus 'nope'"),
        (["ask", "Who?", "--corpus", "../etc", "--grounded"], {}, "'../etc' is not a valid corpus name"),
        (["ask", "Who?", "--set", "TYPO=1"], {}, "no setting 'TYPO'"),
        (["ask", "Who?"], {"LLM_PROVIDER": "nobody"}, "no provider 'nobody'"),
        (["ask", "Who?"], {"LLM_PROVIDER": "deepseek"}, "DEEPSEEK_API_KEY is not set"),
        (["ask", "Who?"], {"LLM_BASE_URL": "http://127.0.0.1:9/v1"}, "FLASH_MODEL is not set"),
        (["deficits", "check", "/nowhere"], {}, "not a folder"),
        (["balance"], {}, "Only DeepSeek"),
        (["config", "show"], {"RRF_K": "many"}, "RRF_K"),
        (["chat", "--corpus", "nope"], {}, "There is no corpus 'nope'"),
        (["demo", "--corpus", "nope"], {}, "There is no corpus 'nope'"),
        (["serve", "--corpus", "sample", "--corpus", "nope"], {}, "build it with `marag ingest PATH... --corpus nope`"),
        (["ingest", "/nowhere", "--corpus", "mine"], {}, "There is no file or folder '/nowhere'"),
        (["ingest", ".", "--corpus", "A B"], {}, "'A B' is not a valid corpus name"),
        (["ingest", ".", "--corpus", "sample"], {}, "'sample' is the packaged corpus"),
        (["ingest", "/nope", "--prune", "--corpus", "mine"], {}, "'/nope'"),
        (["corpora", "drop", "nope", "--yes"], {}, "'nope' (known: none yet)"),
        (["audit", "forget", " "], {}, "There is no key ' '; none exist yet"),
        (["audit", "export", "/nope/x"], {}, "The folder '/nope' does not exist; create it or check the path"),
        (["audit", "export", "x", "--since", "2026"], {}, "--since '2026' is no time; write 2026-01-31"),
        (["audit", "export", "x", "--client", "nope"], {}, "There is no key 'nope'; none exist yet"),
    ],
)
def test_wrong_input_is_rejected_in_one_sentence_before_models_are_loaded(
    words: list[str], env: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*_: object) -> None:
        raise AssertionError("an encoder was loaded for wrong input")

    for user in ("agent.monitor", "retrieval.open_retriever"):
        monkeypatch.setattr(f"meta_agent_rag.{user}.load_encoder", loaded)
    result = marag(*words, **env)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr


def test_doctor_fails_with_a_remedy_if_the_server_is_down() -> None:
    result = marag("doctor", "--json", **deepseek("http://127.0.0.1:9/v1"))
    assert result.exit_code == 1
    (failed,) = [line for line in json.loads(result.stdout) if line["status"] == "fail"]
    assert failed["subject"] == "model"
    assert "does not respond" in failed["words"]
    assert failed["remedy"] == "check that it is running and that the address is right."


@pytest.mark.parametrize(
    ("setting", "value", "subject"),
    [
        ("MARAG_DATA_DIR", "file/below", "data folder"),
        ("MARAG_DATA_DIR", "file", "data folder"),
        ("MONITOR_POLICY", "nope", "monitor"),
        ("CHUNK_OVERLAP", "512", "documents"),
        ("PROMPTS_DIR", "nope", "documents"),
    ],
)
def test_doctor_fails_for_settings_that_commands_would_reject(setting: str, value: str, subject: str) -> None:
    Path("file").touch()
    result = marag("doctor", "--json", **{setting: value})
    assert result.exit_code == 1
    (failed,) = [line for line in json.loads(result.stdout) if line["status"] == "fail"]
    assert failed["subject"] == subject
