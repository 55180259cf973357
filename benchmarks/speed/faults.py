"""How a run copes with a fifth of its calls failing: its answers, and the number of extra calls."""

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.cli.shared.command import Json, print_json, reporting, say
from meta_agent_rag.testing.faults import Misbehaving, request_hash
from meta_agent_rag.testing.scripted import universal_reply
from meta_agent_rag.testing.server import Behaviour, ServerReply, loopback_server

from .rigs.bare import fresh_questions
from .rigs.loopback_run import answered

_NUMBER = re.compile(r"\((\d+)\)")


def register(app: typer.Typer) -> None:
    """Add the measurement."""
    app.command("faults")(faults)


@reporting
def faults(
    n: Annotated[int, typer.Option("--n", min=1, help="Questions.")] = 200,
    share: Annotated[float, typer.Option(min=0, max=0.9, help="Share of calls that fail.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of which calls fail, and how.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions in parallel.")] = 32,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time after which a call counts as hung.")] = 10.0,
    json_: Json = False,
) -> None:
    """A run against a server that misbehaves in fifteen ways, compared with an undisturbed run."""
    result = asyncio.run(measured(n=n, share=share, seed=seed, concurrency=concurrency, seconds=seconds))
    if json_:
        print_json(result)
        return
    say(f"{n} questions, {result['calls_undisturbed']} calls; {sum(result['faults'].values())} more failed:")
    for name, times in sorted(result["faults"].items()):
        say(f"  {times:4d}  {name}")
    say(f"answered {result['answered']} of {n}; same answer as without faults: {result['same']} of {n}")
    say(f"calls {result['calls']}, {result['calls'] / result['calls_undisturbed']:.3f} times the undisturbed run's")


async def measured(*, n: int, share: float, seed: int, concurrency: int, seconds: float) -> dict[str, Any]:
    """The figures of both runs."""
    undisturbed = Misbehaving(inner=_answering, share=0.0)
    disturbed = Misbehaving(inner=_answering, share=share, seed=seed)
    plain = await _answers(undisturbed, n, concurrency, seconds)
    troubled = await _answers(disturbed, n, concurrency, seconds)
    return {
        "questions": n,
        "answered": sum(answer is not None for answer in troubled.values()),
        "same": sum(troubled[id_] == answer for id_, answer in plain.items()),
        "calls_undisturbed": undisturbed.seen.total(),
        "calls": disturbed.seen.total(),
        "faults": dict(disturbed.struck),
    }


def _answering(body: dict[str, Any]) -> ServerReply:
    """Two routes that agree, and for every third question routes that all disagree, so that the loop repairs."""
    text = " ".join(message["content"] for message in body["messages"])
    number = int(_NUMBER.findall(text)[-1])
    said = f"answer {number}" if number % 3 else f"answer {request_hash(body)}"
    return ServerReply(text=json.dumps(universal_reply(said, deficit="reasoning_error")))


async def _answers(behaviour: Behaviour, n: int, concurrency: int, seconds: float) -> dict[str, str | None]:
    with loopback_server(behaviour) as server, tempfile.TemporaryDirectory() as folder:
        outcome = await answered(
            server.base_url,
            fresh_questions(n),
            Path(folder),
            concurrency=concurrency,
            llm_timeout_seconds=seconds,
            response_cache=False,
        )
    return {row["id"]: row["prediction"] if row["error"] is None else None for row in outcome.rows}
