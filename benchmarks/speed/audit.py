"""Does every response have exactly one audit row while the service is killed and its database stopped under load?"""

import asyncio
import random
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.settings import Settings

from .rigs.postgres import Postgres, postgres
from .rigs.serving import BODY, Serving
from .rigs.storm import Storm, verdict

_SETTINGS = (
    "LLM_PROVIDER=deepseek",
    "DEEPSEEK_API_KEY=none",
    "RESPONSE_CACHE=false",
    "SERVICE_RATE_PER_MINUTE=1000000",
    "SERVICE_DEADLINE_SECONDS=60",
)


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("audit")(audit)


@reporting
def audit(
    kills: Annotated[int, typer.Option(help="Kills of the service, on SQLite and on PostgreSQL.")] = 20,
    stops: Annotated[int, typer.Option(help="Immediate stops of PostgreSQL.")] = 3,
    answers: Annotated[int, typer.Option(help="Responses between two such events.")] = 40,
    json_: Json = False,
) -> None:
    """Compare audit rows with responses through kills of the service and immediate stops of PostgreSQL."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(postgres())
        trials = {
            "sqlite, kills": _trial(folder / "1", (), kills=kills, answers=answers),
            "postgresql, kills": _trial(folder / "2", (server.new_database("kills"),), kills=kills, answers=answers),
            "postgresql, stops": _trial(
                folder / "3", (server.new_database("stops"),), stopped=server, stops=stops, answers=answers
            ),
        }
        results = {}
        for name, trial in trials.items():
            results[name] = asyncio.run(trial)
            if not json_:
                say(_line(name, results[name]))
    if json_:
        print_json(results)


def _line(name: str, result: dict[str, Any]) -> str:
    return (
        f"{name} {result['events']}: {result['responses']} responses, {result['rows']} rows; {result['missing']} "
        f"missing, {result['doubled']} doubled, {result['unheard']} whose response a kill cut off; "
        f"status codes {result['statuses']}"
    )


async def _trial(
    folder: Path,
    urls: tuple[str, ...],
    *,
    kills: int = 0,
    stops: int = 0,
    stopped: Postgres | None = None,
    answers: int,
) -> dict[str, Any]:
    words = (*_SETTINGS, f"MARAG_DATA_DIR={folder}", *(f"DATABASE_URL={url}" for url in urls))
    serving = Serving(words=words)
    storm = Storm(url=serving.url, token=await serving.key(), body=BODY)
    events: list[Any] = [serving.killed] * kills
    if stopped is not None:
        events += [partial(_stop, stopped)] * stops
    await asyncio.to_thread(serving.start)
    try:
        await storm.through(events, answers=answers, chance=random.Random(8))
    finally:
        await asyncio.to_thread(serving.stop)
    found = await verdict(Settings.load(words), storm.received)
    return {"events": len(events), **asdict(found), "statuses": dict(storm.statuses)}


def _stop(server: Postgres) -> None:
    server.stop("immediate")
    server.start()
