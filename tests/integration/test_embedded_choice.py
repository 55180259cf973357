"""A listed model in use: it answers under its own name, and a run keeps using it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from benchmarks.runner import app
from meta_agent_rag.llm.embedded import embedded_model_file
from meta_agent_rag.llm.local import local_models
from meta_agent_rag.llm.messages import Message
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.settings import Settings

pytest.importorskip("xllamacpp")
SMALL, LARGE = "qwen2.5-1.5b", "qwen2.5-7b"
STEM = "qwen2.5-1.5b-instruct-q4_k_m"


def downloaded(name: str) -> Path:
    """A listed model, with the weights of the packaged one."""
    packaged = embedded_model_file(Settings.load(["EMBEDDED_MODEL=smollm2-135m"]))
    file = local_models()[name].path(Settings.load())
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(packaged)
    return file


async def test_the_model_chosen_by_auto_answers_under_its_own_name() -> None:
    downloaded(SMALL)
    settings = Settings.load((), llm_provider="embedded", response_cache=False, embedded_context_tokens=2_048)
    async with open_language_model(settings) as model:
        downloaded(LARGE)  # a model downloaded later is not used
        session = model.session()
        await session.areply("short_answer", [Message(role="user", content="Say yes.")])
        identity = (await model.connections.to(model.choice.tiers["flash"])).identity
    (row,) = session.rows
    assert (row.provider, row.model, row.error) == ("embedded", STEM, None)
    assert row.completion_tokens
    assert identity.startswith(f"embedded:{STEM}-")


def run(*words: str, **env: str) -> Result:
    fixed = {"LLM_PROVIDER": "embedded", "MONITOR_ENCODER": "hash-64", "ENCODER": "hash-64"}
    return CliRunner().invoke(app, ["--display", "none", "--no-plots", *words], env={**fixed, **env})


def config(folder: Path) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return reported


@pytest.mark.slow
def test_resumed_and_replayed_runs_keep_the_model() -> None:
    files = [downloaded(SMALL)]
    asked = ("--dataset", "sample", "--mode", "gold", "--method", "closed_book", "--n", "1")
    begun = run(*asked, "--output-dir", "first", "--record", "record.jsonl.gz")
    assert begun.exit_code == 0, begun.output
    (first,) = Path("first").iterdir()
    reported = config(first)
    assert reported["settings"]["embedded_model"] == SMALL
    assert reported["provider"]["models"] == {"flash": STEM, "pro": STEM}
    assert reported["provider"]["embedded_model"] == f"{STEM}.gguf"
    assert {one["identity"].rpartition("-")[0] for one in reported["endpoints"].values()} == {f"embedded:{STEM}"}

    files.append(downloaded(LARGE))
    resumed = run("--resume", str(first))
    assert resumed.exit_code == 0, resumed.output
    other = run("--resume", str(first), EMBEDDED_MODEL=LARGE)
    assert other.exit_code == 0, other.output
    assert config(first)["settings"]["embedded_model"] == SMALL, "a run carries its settings"

    for file in files:
        file.unlink()
    replayed = run("--replay", "record.jsonl.gz", "--output-dir", "second")
    assert replayed.exit_code == 0, replayed.output
    (second,) = Path("second").iterdir()
    assert config(second)["provider"] == reported["provider"]
    rows = [json.loads((folder / "samples.jsonl").read_text()) for folder in (first, second)]
    assert rows[0] == rows[1]
