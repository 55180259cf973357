"""How much the coach's hooks contribute, on the sample course: `python -m benchmarks.socratic --help`.

A scripted explainer replaces the model, so that the measurement needs no key and takes seconds; `--embedded` uses the
embedded model.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from meta_agent_rag.chat.coach.hooks import discover_hooks
from meta_agent_rag.chat.coach.scope import TopicScope
from meta_agent_rag.cli.shared.command import Debug, Json, print_json, reporting, say
from meta_agent_rag.datasets import load_questions
from meta_agent_rag.llm.client import LanguageModel
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.encoder import Encoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.settings import Settings

from .coaching.course import COURSE, MANUAL, Course, read_course, sample_course
from .coaching.explainer import Talk, data, explainer, scripted
from .coaching.measures import added_latency, hook_by_hook, replies_of, scope_quality, violations

_SCRIPTED_TURNS, _EMBEDDED_TURNS = 300, 30
_QUESTIONS = 40

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@reporting
def main(
    embedded: Annotated[bool, typer.Option("--embedded", help="Use the embedded model, which takes minutes.")] = False,
    turns: Annotated[int | None, typer.Option(min=1, help="Turns; default: 300, or 30 with --embedded.")] = None,
    encoder: Annotated[bool, typer.Option(help="Also measure the scope guard, which needs an encoder.")] = True,
    course: Annotated[Path, typer.Option(help="A folder with a course in Markdown.")] = COURSE,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Measure rule violations before and after the hooks, retries, scope precision and recall, and added latency."""
    wanted = turns or (_EMBEDDED_TURNS if embedded else _SCRIPTED_TURNS)
    result = asyncio.run(_measured(read_course(course), wanted, embedded=embedded, encoder=encoder))
    if json_:
        print_json(result)
        return
    _show(result)


async def _measured(course: Course, turns: int, *, embedded: bool, encoder: bool) -> dict[str, Any]:
    settings = Settings.load()
    retriever = SuppliedRetriever(passages=course.passages, encoder=AsyncEncoder(HashEncoder()))
    reads = load_encoder(settings, settings.encoder).encoder if encoder else None
    scope = None if reads is None else TopicScope(subject=course.subject(reads), encoder=AsyncEncoder(reads))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with _model(folder, embedded=embedded) as model:
            talk = Talk(model=model, retriever=retriever, hooks=discover_hooks())
            result = violations(await replies_of(talk, turns))
        result["model"] = "embedded" if embedded else "scripted explainer"
        result["hooks"] = await hook_by_hook(folder, retriever, scope)
    result["latency"] = {"without_encoder": await added_latency(None)}
    if reads is not None and scope is not None:
        result["latency"]["with_encoder"] = await added_latency(scope)
        result["scope"] = {"encoder": reads.name, "corpora": await _scopes(reads, course)}
    return result


async def _scopes(encoder: Encoder, course: Course) -> dict[str, Any]:
    """Scope-guard quality on three corpora: a course, the sample, and the documentation if available."""
    questions, course_questions = data("scope"), data("questions")
    sample = [one.text for one in load_questions("sample").questions][:_QUESTIONS]
    corpora = {
        "course": (course, [*course_questions["within"], *questions["course"]["within"]]),
        "sample": (sample_course(), sample),
    }
    if MANUAL.is_dir():
        corpora["manual"] = (read_course(MANUAL), questions["manual"]["within"])
    found = {}
    for name, (corpus, within) in corpora.items():
        scope = TopicScope(subject=corpus.subject(encoder), encoder=AsyncEncoder(encoder))
        outside = [*course_questions["outside"], *questions[name]["near"]]
        found[name] = await scope_quality(scope, within, outside)
    return found


@asynccontextmanager
async def _model(folder: Path, *, embedded: bool) -> AsyncIterator[LanguageModel]:
    if not embedded:
        async with scripted(explainer(), folder) as model:
            yield model
        return
    settings = Settings.load((), llm_provider="embedded", marag_data_dir=folder)
    async with open_language_model(settings) as model:
        yield model


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
        say(f"scope, with {result['scope']['encoder']}:")
        for name, row in result["scope"]["corpora"].items():
            precision, recall = _shown(row["precision"]), _shown(row["recall"])
            asked = f"{row['within']} questions in scope, {row['outside']} out of scope"
            say(f"  {name} at {row['threshold']:.2f}: precision {precision}, recall {recall} ({asked})")
    for name, row in result["latency"].items():
        say(f"hooks add {row['p50_ms']:.1f} ms (p95 {row['p95_ms']:.1f} ms) per turn {name.replace('_', ' ')}")


def _shown(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"


if __name__ == "__main__":
    app()
