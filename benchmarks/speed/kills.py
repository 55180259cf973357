"""What kills cost a run: repeated calls, changed scores, and money beyond its limit."""

import json
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.journal import read_journal
from meta_agent_rag.llm.messages import Usage
from meta_agent_rag.llm.pricing import price
from meta_agent_rag.shipped import shipped
from meta_agent_rag.testing.server import Behaviour, LoopbackServer, ServerReply, disagreeing, loopback_server

from ..run.folder import SUMMARY, RunFolder
from .rigs.serving import within

_RUNNER = f"{__package__.rpartition('.')[0]}.runner"
_CALLS_A_QUESTION = 5
_MODEL_SECONDS = 0.05
_CACHED_SHARE = 0.6


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("kills")(kills)


@reporting
def kills(
    n: Annotated[int, typer.Option("--n", min=1, help="Questions.")] = 200,
    kills: Annotated[int, typer.Option(min=1, help="Kills of the run.")] = 20,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions in parallel.")] = 8,
    limit: Annotated[
        float, typer.Option(help="Cost limit in USD of the limited runs, with 64 questions in parallel.")
    ] = 0.4,
    seed: Annotated[int, typer.Option(help="Seed of the times of the kills.")] = 4812,
    json_: Json = False,
) -> None:
    """Repeatedly kill and resume a benchmark run, and compare it with an undisturbed one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions = _questions(folder, n)
        through = _through(folder / "kills", questions, kills, concurrency, seed)
        limits = [
            _limited(folder / f"limit-{kills}-{missing}", questions, limit, seed, missing=missing, kills=kills)
            for kills in (0, 2)
            for missing in (0.0, 0.1)
        ]
    if json_:
        print_json({"kills": through, "limits": limits})
        return
    say(f"{n} questions, {through['kills']} kills at work: {through['calls']} calls, {through['repeated']} repeated,")
    say(f"  {through['repeated_received']} of them after their reply had arrived; same scores: {through['same']}")
    for row in limits:
        what = f"{row['kills']} kills, {row['missing']:.0%} of usages missing, {row['calls']} calls"
        say(f"limit {limit} USD, 64 at once, {what}: billed {row['billed_usd']:.6f} ({row['share']:.1%})")


def _questions(folder: Path, n: int) -> Path:
    """A file in HotpotQA's format with n distinct questions."""
    known = json.loads(shipped("questions.json").read_text("utf-8"))
    rows = [
        known[number % len(known)]
        | {"_id": f"kill-{number}", "question": f"{known[number % len(known)]['question']} ({number})"}
        for number in range(n)
    ]
    path = folder / "questions.json"
    path.write_text(json.dumps(rows), "utf-8")
    return path


@dataclass(kw_only=True)
class _Run:
    """A run of the benchmark in its own process, which can be killed and resumed."""

    folder: Path
    server: LoopbackServer
    started_with: tuple[str, ...]
    resumed_with: tuple[str, ...]
    process: "subprocess.Popen[bytes] | None" = None
    output: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output = self.folder / "output.txt"

    @property
    def run_folder(self) -> Path | None:
        """Where its results are."""
        return next(iter(sorted((self.folder / "RESULTS").glob("*"))), None)

    def start(self) -> None:
        """Begin, or continue."""
        known = self.run_folder
        words = self.started_with if known is None else ("--resume", str(known), *self.resumed_with)
        common = ("--display", "none", "--no-plots", "--output-dir", str(self.folder / "RESULTS"))
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                within(self._settings(), _RUNNER, *words, *common),
                cwd=self.folder,
                stdout=output,
                stderr=output,
            )

    def kill_after(self, calls: int, seconds: float) -> bool:
        """Kill it N calls and seconds later; was it still running?"""
        assert self.process is not None
        until = len(self.server.bodies) + calls
        while self.process.poll() is None and len(self.server.bodies) < until:
            time.sleep(0.005)
        time.sleep(seconds)
        at_work = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        return at_work

    def finish(self) -> None:
        """Let it finish."""
        assert self.process is not None
        self.process.wait()

    def _settings(self) -> dict[str, str]:
        return {
            "LLM_PROVIDER": "deepseek",
            "LLM_BASE_URL": self.server.base_url,
            "DEEPSEEK_API_KEY": "loopback",
            "MONITOR_ENCODER": "hash-64",
            "MARAG_DATA_DIR": str(self.folder / "data"),
            "MAX_METACOGNITIVE_ROUNDS": "1",
        }


@contextmanager
def _run(folder: Path, behaviour: Behaviour, questions: Path, *words: str) -> Iterator[_Run]:
    started = ("--dataset", "hotpotqa", "--data-file", str(questions), "--n", str(_count(questions)))
    methods = ("--method", "metarag,standard_rag")
    with loopback_server(behaviour) as server:
        yield _Run(folder=folder, server=server, started_with=(*started, *methods, *words), resumed_with=words)


def _count(questions: Path) -> int:
    return len(json.loads(questions.read_text("utf-8")))


def _through(folder: Path, questions: Path, kills: int, concurrency: int, seed: int) -> dict[str, Any]:
    """A run that is killed, beside an undisturbed one with replies from the same cache."""
    chance = random.Random(seed)
    apart = _count(questions) * _CALLS_A_QUESTION // kills
    struck = 0
    with _run(folder, disagreeing(_MODEL_SECONDS), questions, "--concurrency", str(concurrency)) as run:
        for _ in range(kills):
            run.start()
            struck += run.kill_after(chance.randint(1, max(2 * apart - 1, 1)), chance.random() * 2 * _MODEL_SECONDS)
        run.start()
        run.finish()
        broken = _finished(run)
        asked = Counter(json.dumps(body, sort_keys=True) for body in run.server.bodies)
        received = Counter(
            row["request"] for row in read_journal(broken.calls).rows if not row["cached"] and not row["error"]
        )
        unbroken = replace(run, folder=folder / "whole")
        (unbroken.folder / "data").symlink_to(folder / "data")
        unbroken.start()
        unbroken.finish()
        whole = _finished(unbroken)
    return {
        "questions": _count(questions),
        "kills": struck,
        "calls": asked.total(),
        "repeated": asked.total() - len(asked),
        "repeated_received": sum(times - 1 for times in received.values()),
        "same": _scores(broken) == _scores(whole),
    }


def _finished(run: _Run) -> RunFolder:
    found = run.run_folder
    if found is None or not (found / SUMMARY).is_file():
        raise RuntimeError(run.output.read_text("utf-8")[-2000:])
    return RunFolder(found)


def _scores(folder: RunFolder) -> Mapping[str, Any]:
    return {f"{id_} {name}": (row["prediction"], row["em"], row["f1"]) for (id_, name), row in folder.rows().items()}


def _limited(folder: Path, questions: Path, limit: float, seed: int, *, missing: float, kills: int) -> dict[str, Any]:
    """A run under a cost limit, in one process or killed and resumed in others, and what the server bills."""
    chance = random.Random(seed)
    bills: list[Decimal] = []
    struck = 0
    words = ("--concurrency", "64", "--cost-limit", str(limit), "--no-cache")
    with _run(folder, _billing(disagreeing(_MODEL_SECONDS), bills, missing, seed), questions, *words) as run:
        for _ in range(kills):
            run.start()
            struck += run.kill_after(chance.randint(20, 60), 0.01)
        run.start()
        run.finish()
    billed = sum(bills, Decimal(0))
    return {
        "limit_usd": limit,
        "missing": missing,
        "kills": struck,
        "calls": len(bills),
        "billed_usd": float(billed),
        "share": float(billed) / limit,
    }


def _billing(behaviour: Behaviour, bills: list[Decimal], missing: float, seed: int) -> Behaviour:
    """Bills every incoming call by its size, and omits usage figures from some replies."""
    chance = random.Random(seed)

    def billed(body: dict[str, Any]) -> ServerReply:
        reply = behaviour(body)
        prompt = sum(len(message["content"]) for message in body["messages"]) // 4
        reply = replace(reply, text=_at_length(reply.text))
        usage = Usage(prompt=prompt, cache_hit=int(prompt * _CACHED_SHARE), completion=len(reply.text) // 4)
        cost = price(usage, model=body["model"], prices="deepseek", at=datetime.now(UTC))
        assert cost is not None
        bills.append(cost.usd)
        wire_usage = {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "prompt_cache_hit_tokens": usage.cache_hit,
        }
        return replace(reply, usage=None if chance.random() < missing else wire_usage)

    return billed


def _at_length(reply: str) -> str:
    """A reply of realistic length, so that a run's cost is in the range of its limit."""
    fields = json.loads(reply)
    return json.dumps({**fields, "rationale": "so it is " * 120, "answer": f"{fields['answer']} " + "that is " * 60})
