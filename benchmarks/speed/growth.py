"""Are memory and time per question independent of the number of questions in a run?"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.testing.server import model_server

from .rigs.bare import fresh_questions
from .rigs.loopback_run import answered, require_all

_SIZES = (100, 1000, 5000)
_CONCURRENCY = 32


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("growth")(growth)


@reporting
def growth(
    size: Annotated[list[int] | None, typer.Option(min=1, help="Questions per run; repeatable.")] = None,
    address: Annotated[
        str, typer.Option(hidden=True, help="Response time of the model; passed to child processes.")
    ] = "",
    json_: Json = False,
) -> None:
    """Peak memory and time per question of runs of several sizes, each in its own process."""
    if address:
        print_json(_one(address, (size or [1])[0]))
        return
    with model_server(0.0) as server:
        rows = [_in_a_child(server, n) for n in size or _SIZES]
    if json_:
        print_json(rows)
        return
    for row in rows:
        say(f"{row['questions']:6d} questions: {row['ms_a_question']:.1f} ms each, peak {row['peak_mb']:.0f} MB")


def _in_a_child(server: str, n: int) -> dict[str, Any]:
    words = [sys.executable, "-m", __package__, "growth", "--size", str(n), "--address", server]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def _one(address: str, n: int) -> dict[str, Any]:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = answered(address, fresh_questions(n), Path(folder), concurrency=_CONCURRENCY, max_metacognitive_rounds=1)
        require_all(asyncio.run(run))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"questions": n, "ms_a_question": 1000 * seconds / n, "peak_mb": peak}
