"""How much the coach's hooks contribute, on the sample course: `python -m benchmarks.socratic --help`.

A scripted model that explains at length replaces the real one, so that the measurement needs no key and takes seconds;
`--embedded` uses the embedded model.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from meta_agent_rag.chat.coach.coach import Coach, CoachReply, obeys
from meta_agent_rag.chat.coach.hook import Scope
from meta_agent_rag.chat.coach.levels import Socratic, levels
from meta_agent_rag.chat.coach.scope import TopicScope, subject_of
from meta_agent_rag.chat.history import History
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.ingestion.pipeline import ingest
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.prompts import prompt
from meta_agent_rag.retrieval.open_retriever import open_encoder, open_retriever
from meta_agent_rag.settings import Settings
from meta_agent_rag.shipped import shipped
from meta_agent_rag.testing import ScriptedModel

_SCRIPTED_TURNS, _EMBEDDED_TURNS = 300, 30
_TURNS_A_TALK = 10
_REMEMBERED = 8

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(
    embedded: Annotated[bool, typer.Option("--embedded", help="Use the embedded model, which takes minutes.")] = False,
    turns: Annotated[int | None, typer.Option(min=1, help="Turns; default: 300, or 30 with --embedded.")] = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Measure rule violations before and after the hooks, retries, and scope precision and recall."""
    result = asyncio.run(_measured(turns or (_EMBEDDED_TURNS if embedded else _SCRIPTED_TURNS), embedded=embedded))
    print_json(result) if json_ else _show(result)


@cache
def data(name: str) -> Sequence[str]:
    """The texts of one list of `socratic.yaml`."""
    texts: Sequence[str] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))[name]
    return texts


def explainer() -> ScriptedModel:
    """A model that explains on the first call for a reply, and usually on the second call as well."""
    drafts, again = cycle(data("drafts")), cycle(data("regenerations"))
    begins_again = prompt("coach_retry").sections["instruction"].partition("$")[0]

    def said(request: Request) -> dict[str, Any]:
        lines = again if request.messages[-1].content.startswith(begins_again) else drafts
        return {"reply": next(lines), "acknowledges_right_answer": False}

    return ScriptedModel({"coach": said})


async def _measured(turns: int, *, embedded: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        settings = Settings.load(marag_data_dir=Path(name))
        encoder = open_encoder(settings)
        await ingest(settings, [shipped("course")], "course", encoder=encoder)
        async with open_retriever(settings, "course", encoder=encoder) as retriever, _model(name, embedded) as model:
            subject = await asyncio.to_thread(subject_of, retriever.corpus.catalogue)
            scope = TopicScope(subject=subject, encoder=encoder, threshold=settings.scope_threshold)
            result = violations(await replies_of(Coach(model=model, retriever=retriever), turns))
            result["scope"] = await scope_quality(scope, data("within"), [*data("outside"), *data("near")])
    return {"model": "embedded model" if embedded else "scripted explainer", **result}


@asynccontextmanager
async def _model(folder: str, embedded: bool) -> AsyncIterator[LanguageModel]:
    settings = Settings.load(marag_data_dir=Path(folder), llm_provider="embedded", response_cache=False)
    async with open_language_model(settings, model=None if embedded else explainer()) as model:
        yield model


async def replies_of(coach: Coach, turns: int) -> list[tuple[int, CoachReply]]:
    """A number of turns over all levels, in conversations of ten, as (level, reply)."""
    messages, numbers, replies = cycle(data("within")), cycle(levels()), []
    for begin in range(0, turns, _TURNS_A_TALK):
        level, history = next(numbers), History()
        for _ in range(min(_TURNS_A_TALK, turns - begin)):
            message = next(messages)
            reply = await coach(message, history=history, socratic=Socratic(mode="coach", level=level))
            longer = history.with_exchange(question=message, answer=reply.text, standalone=message, mode=reply.kind)
            history = History(exchanges=longer.exchanges[-_REMEMBERED:], turns=longer.turns)
            replies.append((level, reply))
    return replies


def violations(replies: Sequence[tuple[int, CoachReply]]) -> dict[str, Any]:
    """The figures of a run of replies: shares of broken rules before and after, and the regenerations."""
    asked = [(level, reply) for level, reply in replies if reply.trace.attempts]
    judged = [(level, reply) for level, reply in asked if not reply.trace.emergency]
    retries = [len(reply.trace.attempts) - 1 for _, reply in asked]
    return {
        "replies": len(replies),
        "hints": len(asked) - len(judged),
        "violations_before": _share(not obeys(reply.trace.draft, level) for level, reply in judged),
        "violations_after_retry": _share(not obeys(reply.trace.attempts[-1].text, level) for level, reply in judged),
        "violations_after": _share(not obeys(reply.text, level) for level, reply in judged),
        "retries": sum(retries),
        "most_retries_of_a_reply": max(retries, default=0),
        "outcomes": dict(sorted(Counter(reply.trace.outcome for _, reply in replies).items())),
    }


async def scope_quality(scope: Scope, within: Sequence[str], outside: Sequence[str]) -> dict[str, Any]:
    """Precision and recall of accepting messages."""
    rows = [*((text, True) for text in within), *((text, False) for text in outside)]
    scored = [(await scope.score(text), wanted) for text, wanted in rows]
    passed = [wanted for found, wanted in scored if found is not None and found.score >= found.threshold]
    return {
        "within": len(within),
        "outside": len(outside),
        "precision": _share(passed),
        "recall": round(sum(passed) / len(within), 4),
    }


def _share(flags: Iterable[object]) -> float:
    values = [bool(flag) for flag in flags]
    return round(sum(values) / len(values), 4) if values else 0.0


def _show(result: Mapping[str, Any]) -> None:
    say(f"{result['replies']} replies by the {result['model']}, {result['hints']} of them hints")
    say(
        f"break their level's rules: {result['violations_before']:.1%} of drafts, "
        f"{result['violations_after_retry']:.1%} after the regeneration, "
        f"{result['violations_after']:.1%} of replies shown"
    )
    say(f"regenerations: {result['retries']} (at most {result['most_retries_of_a_reply']} per reply)")
    say("outcomes: " + ", ".join(f"{name} {count}" for name, count in result["outcomes"].items()))
    row = result["scope"]
    asked = f"{row['within']} questions in scope, {row['outside']} out of scope"
    say(f"scope: precision {row['precision']:.1%}, recall {row['recall']:.1%} ({asked})")


if __name__ == "__main__":
    app()
