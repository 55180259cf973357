"""The first commands of a new user reach no machine but this one, and write nothing outside the data folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.slow

GUARD = """
import os, sys

LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "::")
SWITCHED_OFF = {
    "onnxruntime": ("ORT_DISABLE_TELEMETRY", "1"),
    "huggingface_hub": ("HF_HUB_DISABLE_TELEMETRY", "1"),
    "gradio": ("GRADIO_ANALYTICS_ENABLED", "False"),
    "ray": ("RAY_USAGE_STATS_ENABLED", "0"),
}

def watch(event, args):
    if event in ("socket.connect", "socket.sendto") and isinstance(args[1], tuple):
        refuse(str(args[1][0]))
    elif event == "socket.getaddrinfo" and args[0]:
        refuse(args[0] if isinstance(args[0], str) else args[0].decode())
    elif event == "import" and args[0] in SWITCHED_OFF:
        name, value = SWITCHED_OFF[args[0]]
        if os.environ.get(name) != value:
            fail(f"{args[0]} is imported while {name} is not {value}")

def refuse(host):
    if host and not host.startswith(LOOPBACK):
        fail(f"reaches for {host}")

def fail(words):
    os.write(2, f"NOT ALLOWED: {words}\\n".encode())
    os._exit(99)

sys.addaudithook(watch)
"""
"""A native library's sockets are unseen by Python, hence the check of what it is told before its import."""

COMMANDS = (["ask", "Who directed the film Silent Harbour?", "--json"], ["doctor"], ["tour", "--all"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def marag(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "MARAG_DATA_DIR"}}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": str(home.parent / "guard")}
    command = [sys.executable, "-m", "meta_agent_rag.cli.main", *words]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=600, check=False)


def test_the_guard_sees_a_connection(home: Path) -> None:
    program = "import urllib.request; urllib.request.urlopen('http://example.org')"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home.parent / "guard")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 99
    assert "NOT ALLOWED: reaches for example.org" in done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_first_command_reaches_no_other_machine_and_leaves_no_file_in_home(words: list[str], home: Path) -> None:
    done = marag(home, *words)
    assert "NOT ALLOWED" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
    assert [str(file.relative_to(home)) for file in home.rglob("*") if file.is_file()] == []
