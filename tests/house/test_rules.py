"""House rules that readers can rely on, checked against the source code."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "backend" / "meta_agent_rag"
NAME = "meta_agent_rag"
CODE = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

LAYERS = (
    {
        "errors",
        "extras",
        "settings",
        "wording",
        "journal",
        "discovery",
        "shipped",
        "sqlite",
    },
    {"text", "datasets", "statistics"},
    {"prompts"},
    {"llm"},
    {"retrieval"},
    {"ingestion", "grounding"},
    {"agent"},
    {"chat"},
    {"asking"},
    {"checkup"},
    {"service"},
    {"demo"},
    {"cli"},
)
"""The import rule: a layer may import its own parts and those of earlier layers in this list."""
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
TESTING_IMPORTS = {"errors", "settings", "journal", "discovery", "llm", "prompts", "retrieval", "testing"}

HEAVY = (
    "aiohttp",
    "torch",
    "transformers",
    "sentence_transformers",
    "gradio",
    "datasets",
    "langgraph",
    "langchain_core",
    "langchain_openai",
    "openai",
    "opentelemetry",
    "pydantic",
    "numpy",
)
ENVIRONMENT_EXEMPT = {"__init__.py"}
"""It switches off what libraries would send, before any of them is imported."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to: its folder or its own stem."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """A tree's nodes without those that only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from at_run_time(child)


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) for everything a file imports, by absolute name; the name is empty for `import module`."""
    for node in at_run_time(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module_parts(path)[: -node.level] if node.level else ()
            base = ".".join([*package, *([node.module] if node.module else [])])
            yield from ((base, alias.name) for alias in node.names)


def imports(path: Path) -> Iterator[str]:
    """Everything that a file imports, by absolute name."""
    for base, name in imported(path):
        yield base
        if name:
            yield f"{base}.{name}"


def module_parts(path: Path) -> tuple[str, ...]:
    home = PACKAGE.parent if PACKAGE in path.parents else ROOT
    return path.relative_to(home).with_suffix("").parts


def module_graph() -> Mapping[str, set[str]]:
    """Imports among modules of the package and the benchmarks, including those in functions."""
    paths = {".".join(module_parts(path)).removesuffix(".__init__"): path for path in CODE}
    graph = {}
    for module, path in paths.items():
        names = {(base, f"{base}.{name}") for base, name in imported(path)}
        graph[module] = {full if full in paths else base for base, full in names} & set(paths) - {module}
    return graph


def imported_parts(path: Path) -> set[str]:
    """The parts of the package that a file imports."""
    names = [name.split(".") for name in imports(path)]
    parts = {name[1] for name in names if name[0] == NAME and len(name) > 1}
    return parts & (set(RANK) | {"testing"})


def test_imports_run_one_way() -> None:
    wrong = []
    for path in CODE:
        parts = imported_parts(path)
        part = part_of(path) if PACKAGE in path.parents else "benchmarks"
        if any(name.split(".")[0] == "tests" for name in imports(path)):
            wrong.append(f"{shown(path)} imports tests")
        if part in RANK:
            above = {other for other in parts if other == "testing" or RANK[other] > RANK[part]}
            above |= {"benchmarks"} if any(name.split(".")[0] == "benchmarks" for name in imports(path)) else set()
            wrong += [f"{shown(path)} imports {other}" for other in sorted(above)]
        elif part == "testing":
            wrong += [f"{shown(path)} imports {other}" for other in sorted(parts - TESTING_IMPORTS)]
        elif part not in ("__init__", "benchmarks"):
            wrong.append(f"{part} is new: add it to LAYERS")
    assert not wrong


def test_there_are_no_import_cycles() -> None:
    graph = module_graph()
    assert f"{NAME}.llm.client" in graph[f"{NAME}.agent.engine"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def test_benchmarks_import_each_other_by_relative_names() -> None:
    """The wheel contains them under a different name."""
    files = [path for path in CODE if PACKAGE not in path.parents]
    nodes = [(path, node) for path in files for node in ast.walk(tree(path))]
    absolute = [
        f"{shown(path)}:{getattr(node, 'lineno', 0)}"
        for path, node in nodes
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "benchmarks")
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "benchmarks" for alias in node.names))
        or re.fullmatch(r"benchmarks(\.\w+)+", literal_text(node))
    ]
    assert not absolute


@pytest.mark.parametrize("module", [NAME, f"{NAME}.cli.main", f"{NAME}.errors", "benchmarks"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert NAME in loaded or module == "benchmarks"
    assert not loaded & set(HEAVY)


def test_the_environment_is_read_in_one_place() -> None:
    forbidden = {"environ", "environb", "getenv", "getenvb", "putenv", "load_dotenv"}
    exempt = {PACKAGE / name for name in ENVIRONMENT_EXEMPT} | {PACKAGE / "settings.py"}
    readers = {
        f"{shown(path)}:{node.lineno}"
        for path in CODE
        if path not in exempt
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.Attribute) and node.attr in forbidden)
        or (isinstance(node, ast.Name) and node.id in forbidden)
        or (isinstance(node, ast.ImportFrom) and any(alias.name in forbidden for alias in node.names))
    }
    assert not readers
    for name in ENVIRONMENT_EXEMPT:
        uses = re.findall(r"os\.(?:environ|getenv)[.\w]*", (PACKAGE / name).read_text(encoding="utf-8"))
        assert set(uses) <= {"os.environ.setdefault"}, f"{name} may set variables for a library but read none"


def literal_text(node: ast.AST) -> str:
    """The text of a string literal; for an f-string, without its replacement fields."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(literal_text(value) for value in node.values)
    return ""


def test_every_package_has_an_init() -> None:
    folders = {path.parent for path in CODE}
    assert not [shown(folder) for folder in folders if not (folder / "__init__.py").is_file()]
