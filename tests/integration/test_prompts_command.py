"""`marag prompts list|show`, with custom prompts."""

from pathlib import Path

from typer.testing import CliRunner

from meta_agent_rag.cli.main import app

RUNNER = CliRunner()


def own(parent: Path, name: str, text: str) -> str:
    folder = parent / str(len(list(parent.iterdir())))
    folder.mkdir()
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return f"PROMPTS_DIR={folder}"


def test_a_faulty_prompt_is_reported_with_its_key(tmp_path: Path) -> None:
    for text, words in (
        ("instruction: Go.\nanswers: x\n", "unknown section 'answers'"),
        ("instruction: Go, $reader.\n", "unknown placeholder $reader"),
        ("role: x\n", "lacks the required section 'instruction'"),
        ("instruction: It costs 5 $ today.\n", "single '$'"),
    ):
        result = RUNNER.invoke(app, ["prompts", "list", "--set", own(tmp_path, "answerer", text)])
        assert result.exit_code == 2
        assert words in result.stderr, text
        assert "'answerer'" in result.stderr
    result = RUNNER.invoke(app, ["prompts", "list", "--set", own(tmp_path, "answers", "instruction: Go.\n")])
    assert "answers.yaml' replaces no prompt" in result.stderr
