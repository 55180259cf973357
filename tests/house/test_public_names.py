"""The public names of the package: which there are, and that each public class has its name to itself."""

import ast
import inspect
from pathlib import Path

import pytest

import meta_agent_rag

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "Answer",
    "Deficit",
    "Engine",
    "Ledger",
    "MetaRagError",
    "Passage",
    "Round",
    "Settings",
    "Signals",
    "Step",
    "Task",
    "answer",
    "build_graph",
    "discover_deficits",
    "grounded_answer",
    "open_engine",
    "open_retriever",
    "Diagnosis",
    "Findings",
    "Repair",
    "as_date",
    "as_quantity",
}


def test_public_names() -> None:
    assert set(meta_agent_rag.__all__) == PUBLIC
    assert len(meta_agent_rag.__all__) == len(PUBLIC)
    assert meta_agent_rag.__all__ == sorted(meta_agent_rag.__all__)
    for name in meta_agent_rag.__all__:
        assert getattr(meta_agent_rag, name).__doc__, name
    with pytest.raises(AttributeError, match="no_such"):
        getattr(meta_agent_rag, "no_such")  # noqa: B009  # the attribute does not exist, which is the point


def test_a_public_class_has_its_name_to_itself() -> None:
    public = {name for name in meta_agent_rag.__all__ if inspect.isclass(getattr(meta_agent_rag, name))}
    homes: dict[str, list[str]] = {name: [] for name in public}
    for path in (*(ROOT / "backend").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name in public:
                homes[node.name].append(path.relative_to(ROOT).as_posix())
    assert public >= {"Engine", "Findings", "Step", "Task"}
    assert not {name: found for name, found in homes.items() if len(found) != 1}, "rename the other class"
