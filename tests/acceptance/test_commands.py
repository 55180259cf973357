"""The command line: what a newcomer meets, and what it costs."""

from pathlib import Path

import httpx
import pytest

import meta_agent_rag
from meta_agent_rag import Settings
from tests.acceptance.doors import KEY, Model, marag, started

COMMANDS = ("ask", "ingest", "corpora", "chat", "serve", "demo", "deficits", "prompts", "keys", "audit", "doctor")


def test_help_lists_every_command() -> None:
    told = marag("--help").stdout
    assert all(f"  {name} " in told for name in COMMANDS)


def test_secrets_are_masked() -> None:
    shown = marag("config", "show").stdout
    assert KEY not in shown
    assert "DEEPSEEK_API_KEY" in shown


def test_doctor_says_what_is_configured_and_reachable(model: Model) -> None:
    told = marag("doctor").stdout
    assert "deepseek" in told.casefold()
    assert "hash-64" in told
    assert KEY not in told


def test_the_balance_of_the_account_is_shown() -> None:
    assert "7.50" in marag("balance").stdout


def test_prices_are_dated_and_peak_aware() -> None:
    told = marag("prices").stdout
    assert "deepseek" in told
    assert "peak" in told.casefold()


def test_a_setting_is_given_to_any_command() -> None:
    assert "RETRIEVAL_TOP_K = 9" in marag("config", "show", "--set", "RETRIEVAL_TOP_K=9").stdout
    refused = marag("config", "show", "--set", "NO_SUCH_SETTING=1")
    assert refused.exit_code == 2
    assert "NO_SUCH_SETTING" in refused.stderr


def test_the_command_line_comes_before_the_environment_and_that_before_the_default() -> None:
    assert "RETRIEVAL_TOP_K = 7" in marag("config", "show", RETRIEVAL_TOP_K="7").stdout
    assert "RETRIEVAL_TOP_K = 8" in marag("config", "show", "--set", "RETRIEVAL_TOP_K=8", RETRIEVAL_TOP_K="7").stdout


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("RETRIEVAL_TOP_K", "5"),
        ("RETRIEVAL_POOL", "50"),
        ("MONITOR_SIMILARITY_THRESHOLD", "0.4"),
        ("MAX_METACOGNITIVE_ROUNDS", "5"),
        ("CONVERGENCE_THRESHOLD", "0.85"),
        ("WRITER_TEMPERATURE", "0.0"),
        ("CHUNK_CHARACTERS", "512"),
        ("CHUNK_OVERLAP", "64"),
        ("RRF_K", "60"),
    ],
)
def test_the_defaults_are_those_of_the_design(name: str, default: str) -> None:
    assert f"{name} = {default}" in marag("config", "show").stdout.splitlines()


def test_the_example_configuration_documents_every_setting() -> None:
    told = marag("config", "example").stdout
    missing = [name for name in Settings.model_fields if name.upper() not in told]
    assert missing == []


def test_a_refused_key_is_told_in_one_sentence(model: Model) -> None:
    model.status = 401
    refused = marag("ask", "What does a mooring cost?", "--corpus", "library")
    assert refused.exit_code in {1, 2}
    assert "Traceback" not in refused.output
    assert KEY not in refused.output


def test_an_exhausted_balance_is_told_in_one_sentence(model: Model) -> None:
    model.status = 402
    refused = marag("ask", "What does a mooring cost?", "--corpus", "library")
    assert refused.exit_code in {1, 2}
    assert "402" in refused.stderr or "balance" in refused.stderr


def test_an_unknown_corpus_is_named() -> None:
    refused = marag("ask", "Who?", "--corpus", "nowhere")
    assert refused.exit_code == 2
    assert "nowhere" in refused.stderr


def test_a_tour_shows_the_loop_without_a_model(model: Model) -> None:
    told = marag("tour", "--all").stdout
    assert "draft" in told.casefold()
    assert model.bodies == []


def test_the_public_names_are_few_and_importable() -> None:
    assert {"answer", "Settings", "Passage", "build_graph", "Deficit", "Ledger"} <= set(meta_agent_rag.__all__)
    assert all(getattr(meta_agent_rag, name) is not None for name in meta_agent_rag.__all__)


def test_models_to_download_are_listed_with_size_and_licence() -> None:
    told = marag("models").stdout
    assert "Apache" in told
    assert "GB" in told or "MB" in told


@pytest.mark.slow
def test_the_demo_opens_with_its_views_and_reads_no_file_of_the_server(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    home.mkdir()
    secret = home / "secret_plan.md"
    secret.write_text("The secret plan is kept on this server.")
    with started(["demo"], "/", home / "demo.log", {}) as url, httpx.Client(base_url=url, timeout=30) as client:
        page = client.get("/config").text
        for view in ("Loop", "Runs", "Chat", "Coach"):
            assert view in page
        for path in (f"/gradio_api/file={secret}", f"/file={secret}"):
            assert "secret plan" not in client.get(path).text
