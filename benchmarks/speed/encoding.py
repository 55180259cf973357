"""Encoding on torch (sentence-transformers) and on onnxruntime, side by side.

Each runtime has its own process, as in normal use, so that memory and start-up are measured separately;
only one request is in flight at a time, alternating between the two.
"""

import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
from meta_agent_rag.retrieval.corpus.sample import sample_passages

RUNTIMES = ("torch", "onnx")
_QUESTIONS = (
    "Which river flows through the town where the author of the novel was born?",
    "Who directed the film in which the winner of the prize played a spy?",
    "Were both magazines founded before the war ended?",
    "In which year did the company that built the bridge go out of business?",
)


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("encoding")(encoding)


@reporting
def encoding(
    *,
    corpus_dir: Annotated[
        Path | None, typer.Option(help="Folder with corpus.jsonl or corpus.jsonl.gz; default: the sample's passages.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="Encoder, as in the setting ENCODER.")] = "all-MiniLM-L6-v2",
    n: Annotated[int, typer.Option("--n", min=1, help="Passages, in chunks of 64.")] = 320,
    queries: Annotated[int, typer.Option(min=1, help="Questions, one at a time.")] = 40,
    starts: Annotated[int, typer.Option(min=1, help="Measured starts per side.")] = 3,
    json_: Json = False,
) -> None:
    """Time for one question, bulk passages, start-up, and memory, of both runtimes alternately; medians."""
    texts = _texts(corpus_dir, n)
    with tempfile.TemporaryDirectory() as folder:
        result = _measure(texts, encoder, Path(folder), queries, starts)
    if json_:
        print_json(result)
        return
    say(f"{result['encoder']}: {len(texts)} passages, {queries} questions, {starts} starts per side, alternating")
    for runtime in RUNTIMES:
        side = result[runtime]
        say(f"{runtime:5} question {side['query_ms']:.1f} ms; passages {side['passages_per_s']:.1f}/s;")
        say(f"      ready after {side['ready_s']:.2f} s ({side['ready_cpu_s']:.2f} s of CPU);")
        say(f"      peak {side['peak_mb'] or 0:.0f} MB; imports {', '.join(side['imported']) or 'no torch'}")
    say(f"first use, with the export: {result['first_use_s']:.1f} s")
    say(f"onnx / torch: time of a question {result['query_ratio']:.2f}")
    say(f"onnx / torch: speed of passages {result['passages_ratio']:.2f}")
    say(f"largest cosine distance {result['largest_distance']:.1e}")
    say("(medians; the package uses onnx for both unless ENCODER_RUNTIME=torch)")


def _texts(corpus_dir: Path | None, n: int) -> list[str]:
    """The first `n` passages in their indexed form; the sample's passages are repeated if it has fewer."""
    if corpus_dir is None:
        sample = [passage.searchable() for passage in sample_passages()]
        return [sample[number % len(sample)] for number in range(n)]
    found = [path for name in ("corpus.jsonl", "corpus.jsonl.gz") if (path := corpus_dir / name).is_file()]
    if not found:
        raise InputError(f"{str(corpus_dir)!r} contains neither corpus.jsonl nor corpus.jsonl.gz; name another folder.")
    opener = gzip.open if found[0].suffix == ".gz" else open
    with opener(found[0], "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(n), strict=False)]
    return [f"{row['title']}\n{row['text']}" for row in rows]


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One runtime in its process."""

    process: "subprocess.Popen[str]"
    started: float

    def ask(self, kind: str, texts: Sequence[str]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"kind": kind, "texts": list(texts)}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise InputError("The encoder's process has ended; see its output above for the reason.")
        return {**json.loads(line), "since_start": time.perf_counter() - self.started}


@contextmanager
def _side(runtime: str, encoder: str, data_dir: Path) -> Iterator[_Side]:
    command = [sys.executable, "-m", f"{__package__}.rigs.encoding_child", runtime, encoder, str(data_dir)]
    started = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield _Side(process=child, started=started)
        finally:
            child.kill()


def _measure(texts: list[str], encoder: str, data_dir: Path, queries: int, starts: int) -> dict[str, Any]:
    with _side("onnx", encoder, data_dir) as first:
        exporting = first.ask("query", _QUESTIONS[:1])["since_start"]
    ready: dict[str, list[dict[str, Any]]] = {runtime: [] for runtime in RUNTIMES}
    for _ in range(starts):
        for runtime in RUNTIMES:
            with _side(runtime, encoder, data_dir) as side:
                ready[runtime].append(side.ask("query", _QUESTIONS[:1]))
    with ExitStack() as stack:
        sides = {runtime: stack.enter_context(_side(runtime, encoder, data_dir)) for runtime in RUNTIMES}
        asked = _in_turns(sides, "query", [[f"{_QUESTIONS[i % 4]} ({i})"] for i in range(-2, queries)])
        filled = _in_turns(sides, "passage", [texts[:8], *(texts[i : i + 64] for i in range(0, len(texts), 64))])
    result = {
        runtime: _figures(ready[runtime], asked[runtime][2:], filled[runtime][1:], len(texts)) for runtime in RUNTIMES
    }
    torch, onnx = (result[runtime] for runtime in RUNTIMES)
    return {
        "encoder": ready["onnx"][0]["encoder"],
        "passages": len(texts),
        "queries": queries,
        "starts": starts,
        "first_use_s": exporting,
        **result,
        "query_ratio": onnx["query_ms"] / torch["query_ms"],
        "passages_ratio": _pairwise(filled["torch"][1:], filled["onnx"][1:]),
        "largest_distance": _distance(asked["torch"], asked["onnx"]),
    }


def _in_turns(sides: dict[str, _Side], kind: str, requests: Sequence[Sequence[str]]) -> dict[str, list[dict[str, Any]]]:
    """Send every request to both sides, alternating which goes first."""
    answers: dict[str, list[dict[str, Any]]] = {runtime: [] for runtime in sides}
    for number, texts in enumerate(requests):
        for runtime in RUNTIMES if number % 2 else RUNTIMES[::-1]:
            answers[runtime].append(sides[runtime].ask(kind, texts))
    return answers


def _figures(
    ready: list[dict[str, Any]], asked: list[dict[str, Any]], filled: list[dict[str, Any]], passages: int
) -> dict[str, Any]:
    return {
        "query_ms": 1000 * statistics.median(answer["seconds"] for answer in asked),
        "query_cpu_ms": 1000 * statistics.median(answer["cpu_seconds"] for answer in asked),
        "passages_per_s": passages / sum(answer["seconds"] for answer in filled),
        "passages_per_cpu_s": passages / sum(answer["cpu_seconds"] for answer in filled),
        "ready_s": statistics.median(answer["since_start"] for answer in ready),
        "ready_cpu_s": statistics.median(answer["cpu_seconds_in_all"] for answer in ready),
        "imported": filled[-1]["imported"],
        "ready_mb": ready[-1]["peak_mb"],
        "peak_mb": filled[-1]["peak_mb"],
    }


def _pairwise(torch: list[dict[str, Any]], onnx: list[dict[str, Any]]) -> float:
    """Median over chunks of onnx's speed relative to torch's: neighbouring chunks share the machine's load."""
    return float(statistics.median(one["seconds"] / other["seconds"] for one, other in zip(torch, onnx, strict=True)))


def _distance(torch: list[dict[str, Any]], onnx: list[dict[str, Any]]) -> float:
    pairs = [(one["vectors"][0], other["vectors"][0]) for one, other in zip(torch, onnx, strict=True)]
    return float(max(1.0 - sum(a * b for a, b in zip(one, other, strict=True)) for one, other in pairs))
