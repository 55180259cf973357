"""Files that broke other people's parsers, through the command line and as uploads, four at a time."""

import asyncio
import csv
import json
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.ingestion.document import REFUSAL_KINDS
from meta_agent_rag.service.access import open_keys
from meta_agent_rag.service.database import open_database
from meta_agent_rag.settings import Settings

from .rigs.serving import free_port, within

MANIFEST = "manifest.csv"
_CORPUS = "bad"
_AT_ONCE = 4
_NOWHERE = asyncio.subprocess.DEVNULL
_START_SECONDS = 120.0
_HANG_SECONDS = 300.0


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("badfiles")(badfiles)


@reporting
def badfiles(
    folder: Annotated[Path, typer.Argument(help="A folder of files with a manifest.csv (columns file and expected).")],
    seconds: Annotated[float, typer.Option(help="Time limit per file.")] = 10.0,
    memory: Annotated[int, typer.Option(help="Memory limit per file, in MB.")] = 512,
    json_: Json = False,
) -> None:
    """Compare the outcome of each file with the expectation in its manifest."""
    wanted = expected(folder)
    with tempfile.TemporaryDirectory() as name:
        env = {
            "MARAG_DATA_DIR": name,
            "ENCODER": "hash-64",
            "MONITOR_ENCODER": "hash-64",
            "INGEST_SECONDS": str(seconds),
            "INGEST_MEMORY_MB": str(memory),
            "SERVICE_RATE_PER_MINUTE": "100000",
        }
        result = {
            "files": len(wanted),
            "command line": _compared(_ingested(folder, env), wanted, exact=True),
            "uploads": _compared(asyncio.run(_uploaded(folder, sorted(wanted), env)), wanted, exact=False),
            "largest_process_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        }
    if json_:
        print_json(result)
        return
    for way in ("command line", "uploads"):
        measured: Any = result[way]
        say(f"{way}: {measured['as_expected']} of {len(wanted)} as expected, {measured['seconds']:.0f} s in all")
        for line in measured["otherwise"]:
            say(f"  {line}")
    say(f"largest process: {result['largest_process_mb']} MB")


def expected(folder: Path) -> dict[str, str]:
    """What a folder's manifest says about each of its files."""
    with (folder / MANIFEST).open(encoding="utf-8", newline="") as stream:
        return {row["file"]: row["expected"] for row in csv.DictReader(stream)}


def allowed(sentence: str) -> set[str]:
    """The outcomes that a sentence of a manifest allows, `accept` or kinds of refusal; none if it names none."""
    clause = sentence.split(";", maxsplit=1)[0]
    if not clause.startswith(("accept", "refuse")):
        return set()
    kinds: set[str] = {kind for kind in REFUSAL_KINDS if re.search(rf"\b{kind}\b", clause)}
    if "accept" in clause:
        kinds.add("accept")
    return kinds | (set(REFUSAL_KINDS) if re.search(r"accept.* or refuse$", clause) else set())


def _compared(measured: tuple[Mapping[str, str], float], wanted: Mapping[str, str], *, exact: bool) -> dict[str, Any]:
    outcomes, seconds = measured
    otherwise = []
    for name, sentence in wanted.items():
        found, may = outcomes.get(name, "no outcome reported"), allowed(sentence)
        fits = found in may if exact or found == "accept" else bool(may - {"accept"})
        if may and not fits:
            otherwise.append(f"{name}: {found}; expected: {sentence}")
    return {"as_expected": len(wanted) - len(otherwise), "otherwise": otherwise, "seconds": seconds}


def _ingested(folder: Path, env: Mapping[str, str]) -> tuple[dict[str, str], float]:
    started = time.monotonic()
    words = within(env, "meta_agent_rag.cli.main", "ingest", str(folder), "--corpus", _CORPUS, "--json")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        files = json.loads(done.stdout)["files"]
    except (ValueError, KeyError):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr[-2000:]}") from None
    outcomes = {Path(row["source"]).name: row["refusal"] or "accept" for row in files}
    return outcomes, time.monotonic() - started


async def _uploaded(folder: Path, names: list[str], env: Mapping[str, str]) -> tuple[dict[str, str], float]:
    settings = Settings.load([f"{name}={value}" for name, value in env.items() if name == "MARAG_DATA_DIR"])
    async with open_database(settings) as database:
        token, _ = await (open_keys(database, settings)).create("measurement", ("ingest",))
    port = free_port()
    words = within(env, "meta_agent_rag.cli.main", "serve", "--corpus", _CORPUS, "--port", str(port))
    process = await asyncio.create_subprocess_exec(*words, stdout=_NOWHERE, stderr=_NOWHERE)
    address, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"}
    try:
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=_HANG_SECONDS) as client:
            await _listening(client)
            gate = asyncio.Semaphore(_AT_ONCE)
            started = time.monotonic()
            outcomes = await asyncio.gather(*(_outcome(client, gate, folder / name) for name in names))
            return dict(zip(names, outcomes, strict=True)), time.monotonic() - started
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def _listening(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(_START_SECONDS):
        while True:
            try:
                await client.get("/healthz")
            except httpx.TransportError:
                await asyncio.sleep(0.1)
            else:
                return


async def _outcome(client: httpx.AsyncClient, gate: asyncio.Semaphore, path: Path) -> str:
    """`accept`, `refuse`, or what went wrong."""
    async with gate:
        content = await asyncio.to_thread(path.read_bytes)
        reply = await client.post(
            "/v1/documents", params={"corpus": _CORPUS}, files=[("files", (f"upload-{path.name}", content))]
        )
        if reply.status_code != 202:
            return "refuse" if 400 <= reply.status_code < 500 else f"status {reply.status_code}"
        (document,) = reply.json()["documents"]
        until = time.monotonic() + _HANG_SECONDS
        while time.monotonic() < until:
            state = (await client.get(f"/v1/documents/{document['id']}")).json()["state"]
            if state in {"indexed", "failed"}:
                return "accept" if state == "indexed" else "refuse"
            await asyncio.sleep(0.1)
        return "it hangs"
