"""The identity of a run's deficits is stable across processes, and changes with their rules."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.run import provenance
from benchmarks.run.folder import RunFolder
from meta_agent_rag.agent.deficits import Deficit, discover_deficits
from meta_agent_rag.agent.state import Signals
from meta_agent_rag.errors import InputError

ROOT = Path(__file__).parents[2]
DEFICIT = """
from meta_agent_rag.agent.deficits import Deficit, discover_deficits
from meta_agent_rag.agent.state import Signals

def rule(signals):
    reported = [one for one in (signals.agreement, signals.quoted) if one is not None]
    return any(map(lambda one: one == {limit}, reported)) and signals.verbatim in {{"none", "some", "all", "most"}}

DEFICIT = Deficit(name="own", when="w", directive="d", answer_mode="evidence", retrieves=False, heuristic=rule)
"""
SAID = "from benchmarks.run.provenance import _digest; print(_digest(DEFICIT))"


def digest(limit: int, seed: int) -> str:
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    code = f"{DEFICIT.format(limit=limit)}\nbefore = [object() for _ in range({seed})]\n{SAID}"
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_the_digest_of_a_rule_is_stable_across_processes_and_differs_between_rules() -> None:
    assert digest(0, seed=1) == digest(0, seed=2)
    assert digest(0, seed=1) != digest(1, seed=1)


def test_closures_and_defaults_are_part_of_the_digest_of_a_rule() -> None:
    def own(limit: float) -> list[Deficit]:
        def inside(signals: Signals) -> bool:
            return (signals.agreement or 0.0) < limit

        def default(signals: Signals, least: float = limit) -> bool:
            return (signals.agreement or 0.0) < least

        shape: dict[str, Any] = {"name": "own", "when": "w", "directive": "d", "answer_mode": "evidence"}
        return [Deficit(**shape, retrieves=False, heuristic=rule) for rule in (inside, default)]

    for one, same, other in zip(own(0.5), own(0.5), own(0.6), strict=True):
        assert provenance._digest(one) == provenance._digest(same) != provenance._digest(other)


def test_a_deficit_is_identified_by_its_file_with_every_rule_in_it(tmp_path: Path) -> None:
    def digest_of(text: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "own.py").write_text(text)
        return provenance._digest(discover_deficits(folder)["own"])

    known = DEFICIT.format(limit=1).replace("heuristic=rule", "detect=lambda findings: None")
    assert digest_of(known) == digest_of(f"# A remark.\n{known}\n\n")
    assert digest_of(known) != digest_of(known.replace("findings: None", "findings: findings.last_fact"))
    assert digest_of(known) != digest_of(known.replace("detect=lambda", "speaks='before', detect=lambda"))


def test_examples_must_be_a_list_of_texts() -> None:
    given: dict[str, Any] = {
        "name": "own",
        "when": "w",
        "directive": "d",
        "answer_mode": "evidence",
        "retrieves": False,
    }
    assert Deficit(**{**given, "examples": ["one", "two"]}).examples == ("one", "two")
    for wrong in ("one", [1]):
        with pytest.raises(InputError, match="a list of texts as examples"):
            Deficit(**{**given, "examples": wrong})


def test_the_commit_is_none_if_git_hangs_or_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexec sleep 60\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(provenance, "_GIT_SECONDS", 0.1)
    assert provenance.commit() is None


def test_an_error_inside_the_run_is_not_reported_as_a_lock_conflict(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(OSError, match="of the run"), folder.locked():
        raise OSError("of the run")
    (folder.path / ".lock").unlink(missing_ok=True)
    (folder.path / ".lock").mkdir()
    with pytest.raises(InputError, match="cannot be locked"), folder.locked():
        raise AssertionError
    (folder.path / ".lock").rmdir()
    (folder.path / ".lock").write_bytes(b"certainly no database" * 100)
    with folder.locked(), pytest.raises(InputError, match="running in another"), RunFolder(folder.path).locked():
        raise AssertionError
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="needs its own folder"), RunFolder(tmp_path / "file").locked():
        raise AssertionError
