"""How much the coach's hooks contribute, on the sample course: `python -m benchmarks.socratic --help`.

A scripted model that explains at length replaces the real one, so that the measurement needs no key and takes seconds;
`--embedded` uses the embedded model.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import yaml

from meta_agent_rag.chat.coach.coach import Coach, CoachReply, obeys
from meta_agent_rag.chat.coach.hook import CoachDraft, IncomingMessage, PostHook, PreHook, Scope
from meta_agent_rag.chat.coach.hooks import discover_hooks
from meta_agent_rag.chat.coach.levels import Socratic, levels
from meta_agent_rag.chat.coach.scope import TopicScope, subject_of
from meta_agent_rag.chat.history import History
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.errors import InputError
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
    encoder: Annotated[bool, typer.Option(help="Also measure the scope guard, which needs an encoder.")] = True,
    course: Annotated[Path | None, typer.Option(help="A folder with a course in Markdown.")] = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Measure rule violations before and after the hooks, retries, scope precision and recall, and added latency."""
    wanted = turns or (_EMBEDDED_TURNS if embedded else _SCRIPTED_TURNS)
    folder = course or shipped("course")
    if not list(folder.glob("*.md")):
        raise InputError(f"No course found in {str(folder)!r}; name a folder with Markdown files.")
    result = asyncio.run(_measured(folder, wanted, embedded=embedded, encoder=encoder))
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


async def _measured(course: Path, turns: int, *, embedded: bool, encoder: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        own = {"marag_data_dir": Path(name), **({} if encoder else {"encoder": "hash-64"})}
        settings = Settings.load((), **own)
        reads = open_encoder(settings)
        await ingest(settings, [course], "course", encoder=reads)
        async with open_retriever(settings, "course", encoder=reads) as retriever, _model(own, embedded) as model:
            subject = await asyncio.to_thread(subject_of, retriever.corpus.catalogue)
            scope = TopicScope(subject=subject, encoder=reads, threshold=settings.scope_threshold)
            result = violations(await replies_of(Coach(model=model, retriever=retriever), turns))
            result["hooks"] = await _hook_by_hook(scope if encoder else None)
            result["latency"] = {"without_encoder": await _added_latency(None)}
            if encoder:
                result["latency"]["with_encoder"] = await _added_latency(scope)
                result["scope"] = await scope_quality(scope, data("within"), [*data("outside"), *data("near")])
    return {"model": "embedded model" if embedded else "scripted explainer", **result}


@asynccontextmanager
async def _model(own: Mapping[str, Any], embedded: bool) -> AsyncIterator[LanguageModel]:
    settings = Settings.load((), **own, llm_provider="embedded", response_cache=False)
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


async def _hook_by_hook(scope: Scope | None) -> dict[str, dict[str, float]]:
    """For each hook, the share of its cases that go wrong without it and with it."""
    hooks = discover_hooks()
    cases = {
        "scope_guard": (data("outside") if scope is not None else (), ()),
        "deadlock_breaker": (data("stuck"), data("trying")),
        "validation": (data("drafts"), ()),
        "exit_trigger": (data("acknowledging"), data("praising")),
    }
    found: dict[str, dict[str, float]] = {}
    both: list[PreHook | PostHook] = [*hooks.before, *hooks.after]
    for hook in both:
        caught, others = cases.get(hook.name, ((), ()))
        missed = []
        for text, wanted in [*((text, True) for text in caught), *((text, False) for text in others)]:
            if isinstance(hook, PreHook):
                ruling = await hook.before(_incoming(text, scope if hook.name == "scope_guard" else None))
                acted = bool(ruling.emergency or ruling.refusal)
            else:
                finding = hook.after(_draft(text, 1))
                acted = finding.acknowledged or (hook.name == "validation" and bool(finding.violation))
            missed.append(acted != wanted)
        if missed:
            found[hook.name] = {"before": round(len(caught) / len(missed), 4), "after": _share(missed)}
    return found


def _incoming(message: str, scope: Scope | None, level: int = 1) -> IncomingMessage:
    """A message after the coach has just asked a question."""
    question, answer = "Why does the shadow move?", "What turns, the Sun or the Earth?"
    history = History().with_exchange(question=question, answer=answer, standalone=question, mode="coach")
    return IncomingMessage(message=message, history=history, level=levels()[level], scope=scope)


def _draft(text: str, level: int) -> CoachDraft:
    return CoachDraft(text=text, message="The tilt of the axis?", level=levels()[level])


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


async def _added_latency(scope: Scope | None) -> dict[str, float]:
    """Milliseconds that all hooks together take for a turn: median and 95th percentile."""
    hooks, drafts, taken = discover_hooks(), cycle([*data("drafts"), *data("regenerations")]), []
    messages = [*data("within"), *data("outside"), *data("stuck")]
    for text in (messages[0], *messages):  # the first one reads the phrases and encodes the topics
        for level in levels():
            began = time.perf_counter()
            for before in hooks.before:
                await before.before(_incoming(text, scope, level))
            for after in hooks.after:
                after.after(_draft(next(drafts), level))
            taken.append(1000 * (time.perf_counter() - began))
    p50, p95 = np.percentile(taken[len(levels()) :], [50, 95])
    return {"p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3)}


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
    for name, shares in result["hooks"].items():
        say(f"{name}: {shares['before']:.1%} of the cases go wrong without it, {shares['after']:.1%} with it")
    if "scope" in result:
        row = result["scope"]
        asked = f"{row['within']} questions in scope, {row['outside']} out of scope"
        say(f"scope: precision {row['precision']:.1%}, recall {row['recall']:.1%} ({asked})")
    for name, row in result["latency"].items():
        say(f"hooks add {row['p50_ms']:.1f} ms (p95 {row['p95_ms']:.1f} ms) per turn {name.replace('_', ' ')}")


if __name__ == "__main__":
    app()
