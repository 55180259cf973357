"""The core stays small, and the table of extras agrees with pyproject.toml and the code."""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from meta_agent_rag.cli.main import app
from meta_agent_rag.errors import MissingExtraError
from meta_agent_rag.extras import EXTRAS, require
from meta_agent_rag.retrieval.encoders.loading import _chosen, load_encoder
from meta_agent_rag.settings import Settings

ROOT = Path(__file__).parents[2]
MOST_IN_THE_CORE = 16
OURS = {"meta_agent_rag", "benchmarks"}
SERVERS = [f"--set={name}=http://127.0.0.1:1" for name in ("QDRANT_URL", "ELASTICSEARCH_URL")]


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def locked() -> dict[str, dict[str, Any]]:
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    return {package["name"]: package for package in packages}


def brought_by(requirements: Iterable[str]) -> set[str]:
    """The packages that requirements install, including transitive dependencies."""
    found: set[tuple[str, str]] = set()

    def add(name: str, extra: str) -> None:
        if (name, extra) in found or name not in locked():
            return
        found.add((name, extra))
        package = locked()[name]
        needed = package.get("optional-dependencies", {}).get(extra, []) if extra else package.get("dependencies", [])
        for one in needed:
            for wanted in ("", *one.get("extra", ())):
                add(one["name"], wanted)

    for requirement in map(Requirement, requirements):
        for extra in ("", *requirement.extras):
            add(canonicalize_name(requirement.name), extra)
    return {name for name, _ in found}


@cache
def distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def homes(module: str) -> set[str]:
    """The installed packages that provide a module; of one that `uv sync` leaves out, the name is the package's."""
    if module in {"ray", "torch", "transformers", "sentence_transformers"} and module not in distributions():
        return {canonicalize_name(module)}
    return {canonicalize_name(name) for name in distributions().get(module, [])}


def third_party_modules(folder: str) -> Iterator[str]:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_the_core_is_small() -> None:
    assert len(project()["project"]["dependencies"]) <= MOST_IN_THE_CORE
    heavy = {"torch", "gradio", "fastapi", "datasets", "elasticsearch", "qdrant-client", "sqlalchemy"}
    assert not heavy & brought_by(project()["project"]["dependencies"])


def test_the_table_names_the_extras_of_the_project() -> None:
    extras = project()["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"all"}
    (everything,) = extras["all"]
    assert Requirement(everything).extras == set(EXTRAS)
    core = brought_by(project()["project"]["dependencies"])
    for extra, modules in EXTRAS.items():
        brought = brought_by([f"meta-agent-rag[{extra}]"])
        for module in modules:
            assert homes(module) & brought, f"the extra {extra} does not install {module}"
            assert not homes(module) & core, f"{module} is in the core, so no extra needs to name it"


def test_every_import_is_in_the_core_or_in_an_extra() -> None:
    core = brought_by(project()["project"]["dependencies"])
    known = {module for modules in EXTRAS.values() for module in modules} | OURS | set(sys.stdlib_module_names)
    imported = set(third_party_modules("backend")) - known
    assert imported
    assert not {module for module in imported if not homes(module) & core}


@pytest.mark.parametrize(
    ("module", "extra", "command", "named"),
    [
        ("gradio", "demo", ["demo"], "`marag demo`"),
        ("fastapi", "service", ["serve"], "`marag serve`"),
        ("mcp", "mcp", ["mcp"], "`marag mcp`"),
        ("pypdf", "ingest", ["ingest", ".", "--corpus", "mine"], "`marag ingest`"),
        ("prompt_toolkit", "chat", ["chat"], "`marag chat`"),
        ("sqlalchemy", "service", ["keys", "list"], "This command"),
        ("qdrant_client", "servers", ["ask", "Who?", *SERVERS], "QDRANT_URL"),
    ],
)
def test_a_command_names_its_missing_extra(
    module: str, extra: str, command: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == module or name.startswith(("meta_agent_rag.service.",))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    remedy = f'{named} needs the extra "{extra}"; install it: pip install "meta-agent-rag[{extra}]".'
    assert result.stderr.splitlines()[-1] == remedy


def test_without_encoder_extras_defaults_fall_back_and_chosen_encoders_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    _chosen.cache_clear()
    for module in ("sentence_transformers", "onnxruntime"):
        monkeypatch.setitem(sys.modules, module, None)
    found = load_encoder(Settings.load())
    assert found.encoder.name == "hash-64"
    assert "meta-agent-rag[encoders]" in (found.note or "")
    assert load_encoder(Settings.load(["ENCODER=hash-64"])).note is None
    with pytest.raises(MissingExtraError, match=r"thenlper/gte-small.*\[torch\]"):
        load_encoder(Settings.load(["ENCODER=thenlper/gte-small"]))
    with pytest.raises(MissingExtraError, match="The loop"):
        require("torch", "The loop")
    _chosen.cache_clear()
