"""`marag new`: generated files work unchanged, in a copy of the tree and in a user's folder."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from benchmarks.runner import app as runner
from meta_agent_rag import discover_deficits
from meta_agent_rag.cli.main import app
from meta_agent_rag.testing.server import helpful, loopback_server
from tests.trees import PARTS, copied_tree, failures, in_tree, run_suites

pytestmark = pytest.mark.slow

KINDS = {
    "deficit": "docs/architecture.md",
    "operator": "docs/derivation.md",
    "route": "docs/derivation.md",
    "method": "docs/benchmarks-reference.md",
    "dataset": "docs/benchmarks-reference.md",
}
"""Each kind and the document that lists its members."""
COPIED = {"parser": "parsers", "hook": "coach_hooks", "analysis": "analyses"}
"""Kinds copied from a documented example, with their contract suites; a process reads each registry once."""
SUITES = (
    *(f"tests/contracts/test_{kind}.py" for kind in (*(f"{one}s" for one in KINDS), "prompts", *COPIED.values())),
    *(f"tests/unit/test_{kind}_new_{kind}.py" for kind in KINDS),
    "tests/unit/test_settings.py",
)
MAKE = """
import sys
from typer.testing import CliRunner
from meta_agent_rag.cli.main import app

for kind in sys.argv[1:]:
    made = CliRunner().invoke(app, ["new", kind, f"new_{kind}"])
    assert made.exit_code == 0, made.output
    sys.stdout.write(made.output)
"""
ENVIRONMENT = {"ENCODER": "hash-64", "MONITOR_ENCODER": "hash-64", "LLM_PROVIDER": "deepseek", "DEEPSEEK_API_KEY": "sk"}


def marag(*words: str, **env: str) -> Result:
    """Run `marag` in this process, outside the clone."""
    return CliRunner().invoke(app, [*words], env=env)


def files_here() -> set[str]:
    """The files in the working folder, except the data folder."""
    return {str(path) for path in Path().rglob("*") if path.is_file() and path.parts[0] != "data"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which the command has created a member of each kind."""
    tree = copied_tree(tmp_path_factory.mktemp("new") / "tree", *PARTS)
    for kinds in (*([kind] for kind in COPIED), KINDS):
        made = in_tree(tree, "-c", MAKE, *kinds)
        assert made.returncode == 0, made.stdout + made.stderr
        for line in made.stdout.splitlines():
            if line.startswith("next: "):
                assert re.match(r"next: `uv run .*` (shows|runs)", line)
                assert all((tree / path).exists() for path in re.findall(r"(?:tests|docs)/\S+\.\w+", line))
            else:
                assert (tree / line.removeprefix("written: ")).is_file()
    return tree


class TestInAClone:
    """Files are written into the tree, and everything derived from them is updated."""

    def test_documents_list_new_members(self, tree: Path) -> None:
        for kind, document in KINDS.items():
            assert f"`new_{kind}`" in (tree / document).read_text(encoding="utf-8")
        checked = in_tree(tree, "docs/generate.py", "--check")
        assert (checked.returncode, checked.stdout) == (0, "")

    def test_new_members_pass_contract_suites_and_their_own_tests(self, tree: Path) -> None:
        names = [f"new_{kind}" for kind in (*KINDS, *COPIED)]
        done = run_suites(tree, SUITES, names)
        assert done.returncode == 0, failures(done)
        for name in names:
            assert re.search(rf"^PASSED tests/contracts/.*\[.*{name}.*\]$", done.stdout, re.MULTILINE)
        for name in names[: len(KINDS)]:
            assert re.search(rf"^PASSED tests/unit/test_\w+_{name}\.py", done.stdout, re.MULTILINE)

    def test_new_members_pass_ruff(self, tree: Path) -> None:
        for words in (("check",), ("format", "--check")):
            command = [sys.executable, "-m", "ruff", *words, "--no-cache", "."]
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr

    def test_an_existing_file_is_kept(self, tree: Path) -> None:
        file = tree / "backend/meta_agent_rag/agent/deficits/deficit.py"
        before = file.read_bytes()
        refused = in_tree(tree, "-m", "meta_agent_rag.cli.main", "new", "deficit", "deficit")
        assert (refused.returncode, file.read_bytes()) == (2, before)
        assert f"{str(file)!r} already exists" in refused.stderr


class TestOutsideAClone:
    """Files are written into the folder that discovery reads."""

    def test_each_kind_works_unchanged(self) -> None:
        shows = {kind: self.made(kind, f"new_{kind}") for kind in KINDS}
        assert "new_deficit (evidence, retrieves)" in self.run(shows["deficit"])
        with loopback_server(helpful()) as server:
            for kind in ("method", "dataset"):
                assert f"new_{kind}" in self.run(shows[kind], **ENVIRONMENT, LLM_BASE_URL=server.base_url)
        # their own tests, independently of this repository's configuration
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider"]
        command += [f"my_{kind}s/tests" for kind in KINDS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert marag("deficits", "check", "my_deficits").exit_code == 0

    def test_two_members_of_a_kind_coexist(self) -> None:
        self.made("deficit", "one_more")
        self.made("deficit", "yet_another")
        deficits = discover_deficits(Path("my_deficits"))
        assert (deficits["one_more"].priority, deficits["yet_another"].priority) == (5, 6)

    def test_the_setting_chooses_the_folder(self, tmp_path: Path) -> None:
        made = marag("new", "operator", "mine", "--json", OPERATORS_DIR="some where/operators")
        assert made.exit_code == 0, made.output
        reported = json.loads(made.stdout)
        assert reported["files"] == ["some where/operators/mine.py", "some where/operators/tests/test_operator_mine.py"]
        assert reported["next"].startswith("`python -m pytest 'some where/operators'/tests` shows it at work; ")
        assert files_here() == set(reported["files"])
        whole = tmp_path / "whole"
        made = marag("new", "operator", "another", "--json", OPERATORS_DIR=str(whole))
        assert str(whole / "another.py") in json.loads(made.stdout)["files"]

    def made(self, kind: str, name: str) -> str:
        """Create a member in the working folder; returns the command that demonstrates it."""
        result = marag("new", kind, name)
        assert result.exit_code == 0, result.output
        *written, following = result.output.splitlines()
        assert {line.removeprefix("written: ") for line in written} <= files_here()
        (command, *_) = re.findall(r"`(.*?)`", following)
        return str(command)

    def run(self, command: str, **env: str) -> str:
        """Run a printed command of ours in this process."""
        first, *words = shlex.split(command)
        assert first == "marag"
        benchmark = words[:2] == ["bench", "runner"]
        chosen, rest = (runner, [*words[2:], "--no-plots"]) if benchmark else (app, words)
        result = CliRunner().invoke(chosen, rest, env=env)
        assert result.exit_code == 0, result.output
        return result.output


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("deficits", "mine", "There is no kind 'deficits'; choose from: analysis, dataset, deficit, hook, method,"),
        *(
            ("method", name, "is not lower_case_with_underscores (2 to 40 characters)")
            for name in ("", "two-words", "9lives", "../up", "line\n", "x", "_x", "Upper", "ünder", "x" * 41)
        ),
        ("operator", "class", "'class' is a Python keyword"),
        ("deficit", "reasoning_error", "Another deficit is already named 'reasoning_error'"),
        ("operator", "count", "Another operator is already named 'count'"),
        ("method", "flare", "Another method is already named 'flare'"),
        ("dataset", "sample", "Another dataset is already named 'sample'"),
        ("deficit", "stop", "The deficit name 'stop' is reserved"),
        ("route", "derivation", "The route name 'derivation' is reserved"),
        ("method", "evaluate", "A prompt is already named 'evaluate'"),
    ],
)
def test_an_invalid_name_is_rejected(kind: str, name: str, words: str) -> None:
    refused = marag("new", kind, name)
    assert refused.exit_code == 2
    assert words in refused.stderr
    assert re.fullmatch(r"[^\n]+\.\n", refused.stderr)
    assert not files_here()


def test_either_all_files_are_written_or_none() -> None:
    Path("my_methods").mkdir()
    Path("my_methods/tests").touch()
    refused = marag("new", "method", "mine")
    assert refused.exit_code == 2
    assert "'my_methods/tests' cannot be written" in refused.stderr
    assert files_here() == {"my_methods/tests"}
