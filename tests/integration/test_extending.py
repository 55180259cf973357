"""Every example of the two pages on extending works when added to a copy of the tree, with no other change."""

import re
from pathlib import Path

import pytest

from tests.trees import PARTS, copied_tree, in_tree

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FILE = re.compile(r"^.*`(?P<path>(?:backend|benchmarks)/[^`]+)`.*\n\n```\w+\n(?P<text>[\s\S]*?)^```$", re.MULTILINE)
CHOOSE = """
import json
from pathlib import Path
from benchmarks.analyses import discover_analyses
from benchmarks.methods import discover_methods
from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.monitor import policy
from meta_agent_rag.chat.coach.hooks import discover_hooks
from meta_agent_rag.datasets import discover, load_questions
from meta_agent_rag.demo.workbench import read_questions
from meta_agent_rag.ingestion.parsers import known_suffixes
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Settings

settings = Settings.load(["LLM_PROVIDER=acme", "ACME_API_KEY=secret"])
choice = choose_provider(settings)
assert choice.tiers['flash'].api_key.get_secret_value() == "secret" and "secret" not in repr(settings)
assert choice.models == {"flash": "acme-small", "pro": "acme-large"}
assert discover_deficits()["outdated_facts"].retrieves
assert discover_operators()["total"].compares
assert policy(Settings.load(["MONITOR_POLICY=vote", "ROUTES=second_sight"]))
rivers = discover()["two_rivers"]
Path("rivers.json").write_text(json.dumps([rivers.example]))
assert load_questions("two_rivers", data_file=Path("rivers.json")).questions == (rivers.parse(rivers.example, {}),)
assert read_questions(Path("rivers.json")).questions[0].id == "rivers-1"
assert "iter_retgen" in discover_methods()
assert ".srt" in known_suffixes()
assert "no_links" in {hook.name for hook in discover_hooks().after}
assert "length" in {analysis.name for analysis in discover_analyses()}
"""


def examples() -> list[tuple[str, str]]:
    """The files of all examples, as (path, text)."""
    pages = ("extending.md", "extending-documents.md")
    return [found for page in pages for found in FILE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with all examples added and its documents regenerated; table rows are appended."""
    tree = copied_tree(tmp_path_factory.mktemp("extended") / "tree", *PARTS)
    for path, text in examples():
        file = tree / path
        assert not file.exists() or file.suffix == ".yaml", f"{path} already exists"
        with file.open("a", encoding="utf-8") as opened:
            opened.write(text)
    generated = in_tree(tree, "docs/generate.py")
    assert generated.returncode == 0, generated.stderr
    return tree


def test_each_example_is_discovered_and_can_be_chosen(tree: Path) -> None:
    done = in_tree(tree, "-c", CHOOSE)
    assert done.returncode == 0, done.stderr
