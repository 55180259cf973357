"""Every example in docs/python.md runs, in page order, against a loopback server."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.methods import Method, MethodTask, discover_methods
from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.testing import ScriptedModel
from meta_agent_rag.testing.server import quoting
from tests.loop import BIRTH, EVIDENCE, FILM, QUESTION, settings_in
from tests.loopback import Serve

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
METHODS = [block for block in BLOCKS if "METHOD = " in block]
SCRIPTS = [block for block in BLOCKS if block not in METHODS]


def test_the_guide_has_examples() -> None:
    assert len(SCRIPTS) >= 6
    assert len(METHODS) == 1
    shown = "\n".join(SCRIPTS)
    for topic in (
        "evidence=",
        "retriever=",
        "on_step=",
        "on_text=",
        "astream",
        "Deficit",
        "Operator",
        "grounded_answer",
    ):
        assert topic in shown


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
def test_an_example_runs(
    script: str, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = serve(quoting())
    monkeypatch.setenv("LLM_BASE_URL", server.base_url)
    monkeypatch.setenv("FLASH_MODEL", "scripted")
    monkeypatch.setenv("ENCODER", "hash-64")
    monkeypatch.setenv("MONITOR_ENCODER", "hash-64")
    (tmp_path / "example.py").write_text(script, encoding="utf-8")
    runpy.run_path(str(tmp_path / "example.py"), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert server.bodies


async def test_the_method_of_the_guide_searches_twice(tmp_path: Path) -> None:
    method = method_from(METHODS[0], tmp_path)
    assert method.name not in discover_methods()
    model = ScriptedModel({"baseline": {"answer": "Mira Holt [1].", "short_answer": "Mira Holt"}})
    settings = settings_in(tmp_path, "RETRIEVAL_TOP_K=1", "MONITOR_ENCODER=hash-64")
    async with open_engine(settings, model=model) as engine:
        search = SuppliedRetriever(passages=EVIDENCE, encoder=engine.monitor_encoder)
        task = MethodTask(question=QUESTION, id="q", method=method.name, retriever=search, search=search)
        answer = await method.answer(engine, task)
    assert len(model.requests) == 2
    assert {found.passage for found in answer.evidence} == {FILM, BIRTH}


def method_from(source: str, folder: Path) -> Method:
    """The method in a file, loaded as if it were in `benchmarks/methods`."""
    file = folder / "search_twice.py"
    file.write_text(source, encoding="utf-8")
    name = f"{discover_methods.__module__}._of_the_guide"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = module.METHOD
    assert isinstance(found, Method)
    return found
