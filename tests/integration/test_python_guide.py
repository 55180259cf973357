"""Every example in docs/python.md runs, in page order, against a loopback server."""

import re
import runpy
from pathlib import Path

import pytest

from meta_agent_rag.testing.server import quoting
from tests.loopback import Serve

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("script", BLOCKS, ids=range(len(BLOCKS)))
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
