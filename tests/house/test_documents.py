"""The documentation is correct: generated parts are up to date, and examples run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from meta_agent_rag import discover_deficits
from meta_agent_rag.agent.diagnose import critique_schema
from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.cli.main import app

ROOT = Path(__file__).parents[2]


def blocks(path: Path, language: str) -> list[str]:
    """The fenced code blocks of a language in a document."""
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def test_generated_parts_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [path.name for path, text in module.generated().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run: uv run python docs/generate.py"


@pytest.mark.slow
def test_the_readme_example_runs_with_the_embedded_model(tmp_path: Path) -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    (tmp_path / "example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, stop_reason, calls = done.stdout.strip().rsplit(" | ", 2)
    assert stop_reason in {"satisfied", "critic_satisfied", "converged", "oscillating", "max_rounds"}
    assert re.fullmatch(r"\d+ calls", calls)


def test_the_deficit_of_the_walkthrough_works() -> None:
    folder = ROOT / "docs" / "examples" / "deficits"
    source = (folder / "conflicting_sources.py").read_text(encoding="utf-8")
    for shown in blocks(ROOT / "docs" / "adding-a-deficit.md", "py"):
        assert all(part.strip() in source for part in shown.split("    ...\n")), (
            "the page shows other code than the file"
        )
    checked = CliRunner().invoke(app, ["deficits", "check", str(folder)])
    assert checked.exit_code == 0, checked.output
    assert f"conflicting_sources: OK; {len(discover_deficits().names) + 1} deficits" in checked.output
    deficits = discover_deficits(folder)
    assert "conflicting_sources" in build_graph(deficits).get_graph().nodes
    assert "conflicting_sources" in critique_schema(deficits).model_json_schema()["properties"]["deficit"]["enum"]


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda p: p.name)
def test_links_between_documents_resolve(path: Path) -> None:
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_commands_in_the_documents_exist() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    words = {match for path in documents for match in re.findall(r"marag ([a-z]+)", path.read_text(encoding="utf-8"))}
    for word in sorted(words):
        assert CliRunner().invoke(app, [word, "--help"]).exit_code == 0, word


def shell_lines(text: str) -> list[str]:
    """The lines of a document's indented and fenced shell blocks, without leading variable assignments."""
    fenced = "\n".join(re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL))
    indented = re.findall(r"^ {4}(\S.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return [re.sub(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*", "", line) for line in [*fenced.splitlines(), *indented]]


def test_commands_in_the_documents_run_in_a_clone() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    lines = [(path.name, line) for path in documents for line in shell_lines(path.read_text(encoding="utf-8"))]
    assert sum(line.startswith("uv run ") for _, line in lines) > 40
    bare = [one for one in lines if re.match(r"(marag|python3?|pytest|ruff|mypy)\b", one[1])]
    assert not bare, "write it as `uv run ...`"
    assert shell_lines("    A=1 marag ask\n```sh\nmarag chat\n```") == ["marag chat", "marag ask"]


def test_the_repository_map_names_existing_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!to \.\.\.).+? \| (.*) \|$", section(text, "Where do I ...?"), re.MULTILINE)
    assert rows
    for row in rows:
        folders = [ROOT, *(ROOT / path for path in re.findall(r"`([^`]+/)[^`/]*`", row))]
        named = re.findall(r"`([^`]+)`", row)
        assert named
        for path in named:
            assert any((folder / path).exists() for folder in folders), path


def section(text: str, heading: str) -> str:
    """The text of a document's section."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
