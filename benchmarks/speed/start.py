"""How long commands take to start: `marag --help`, and `marag ask` with every reply in the cache."""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.testing.server import helpful, loopback_server

_QUESTION = "Which of the two bridges of the town was opened first?"
_COMMANDS: Mapping[str, Sequence[str]] = {
    "import of LangGraph": ("-c", "import langgraph.graph"),
    "marag --help": ("-m", "meta_agent_rag.cli.main", "--help"),
    "marag ask": ("-m", "meta_agent_rag.cli.main", "ask", _QUESTION),
}


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("start")(start)


@reporting
def start(
    runs: Annotated[int, typer.Option(min=1, help="Measured starts per command, alternating.")] = 7,
    json_: Json = False,
) -> None:
    """Median start times of commands, with bytecode and replies cached by a first run."""
    with tempfile.TemporaryDirectory() as folder, loopback_server(helpful()) as server:
        environment = _environment(Path(folder), server.base_url)
        first = {name: _started(words, environment) for name, words in _COMMANDS.items()}
        asked = len(server.bodies)
        rounds = [{name: _started(words, environment) for name, words in _COMMANDS.items()} for _ in range(runs)]
        if not asked or len(server.bodies) != asked:
            raise InputError("`marag ask` did not take its replies from the cache, so its start time is meaningless.")
    result = {
        name: {
            "first_s": first[name][0],
            "wall_s": statistics.median(one[name][0] for one in rounds),
            "cpu_s": statistics.median(one[name][1] for one in rounds),
        }
        for name in _COMMANDS
    }
    if json_:
        print_json({"runs": runs, "commands": result})
        return
    for name, row in result.items():
        say(f"{name:20} {row['wall_s']:.2f} s, {row['cpu_s']:.2f} s of CPU (first start {row['first_s']:.2f} s)")
    say(f"(medians of {runs} starts, alternating; {asked} calls were made, all by the first `marag ask`)")


def _environment(folder: Path, address: str) -> dict[str, str]:
    """An environment without the caller's settings; bytecode is kept, as in normal use."""
    return {
        "HOME": str(folder),
        "PYTHONPATH": ":".join(sys.path),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "LLM_PROVIDER": "deepseek",
        "LLM_BASE_URL": address,
        "DEEPSEEK_API_KEY": "loopback",
        "MARAG_DATA_DIR": str(folder / "data"),
        "HF_HUB_OFFLINE": "1",
    }


def _started(words: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one start. Raises `InputError` if it failed."""
    before, began = _children_cpu(), time.perf_counter()
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise InputError(f"{' '.join(words)!r} ended with {done.returncode}: {done.stderr[-500:]}")
    return seconds, _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
