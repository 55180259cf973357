"""The contract of every benchmark method."""

import re
import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.methods import Method, discover_methods, named
from meta_agent_rag.errors import (
    AuthenticationError,
    BalanceError,
    ContextWindowError,
    CostLimitError,
    InputError,
    MetaRagError,
    RefusedError,
    StructuredOutputError,
    UnknownNameError,
)
from meta_agent_rag.llm.messages import Request
from meta_agent_rag.prompts import phrase
from meta_agent_rag.testing import ScriptedModel, universal_reply
from tests.loop import EVIDENCE, QUESTION
from tests.methods import CALLED, ListRetriever, answered, numbered_passages

ROOT = Path(__file__).parents[2]
METHODS = discover_methods()
BASELINES = {name: method for name, method in METHODS.items() if not method.loop}
STAGES = [
    stage
    for folder in ("backend/meta_agent_rag/llm", "benchmarks/methods")
    for stage in yaml.safe_load((ROOT / folder / "stages.yaml").read_text(encoding="utf-8"))
]
MAX_CALLS = 16
"""The most calls that any baseline makes per question: FLARE's six sentences, twice, and the answer."""
each_baseline = pytest.mark.parametrize("name", BASELINES)


def at_every_stage(line: Any) -> dict[str, Any]:
    """The same script for every stage."""
    return dict.fromkeys(STAGES, line)


def failing_after(calls: int, fault: MetaRagError) -> Callable[[Request], Any]:
    """An endless model that fails after `calls` calls."""
    tally = count(1)
    return lambda request: fault if next(tally) > calls else endless(request)


def endless(request: Request) -> Mapping[str, Any] | str:
    """A model that never finishes: every reply brings a new query, sentence or doubt."""
    word = f"w{zlib.crc32(repr(request.messages).encode())}x"
    if request.json_schema is None:
        return f"The {word} is near the park."
    return universal_reply(
        word, action="search", argument=word, needed=True, follow_up=f"Where is {word}?", correct=False
    )


def test_methods_are_selected_by_name() -> None:
    assert [method.name for method in named("flare, react")] == ["flare", "react"]
    assert {method.name for method in named("all")} == set(METHODS)
    with pytest.raises(UnknownNameError, match="'flair'"):
        named("flair")
    with pytest.raises(InputError, match="repeats a method"):
        named("flare,flare")


VENUES = "WWW|NeurIPS|ICLR|ICML|ACL|NAACL|EACL|EMNLP|TACL|COLING|AAAI|IJCAI|SIGIR|CIKM|TMLR"


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
class TestEveryMethod:
    """The contract shared by the loop and the baselines."""

    def test_it_has_a_name_and_a_citation(self, method: Method) -> None:
        module = import_module(f"benchmarks.methods.{method.name}")
        assert module.METHOD is method, "name the file after the method"
        assert (module.__doc__ or "").strip(), "say in the docstring what the method does"
        for text in (method.about, method.departures):
            assert text.strip(), "fill in `about` and `departures`"
            assert "|" not in text, "a bar would break the Markdown table"
        assert re.search(r"arXiv:\d{4}\.\d{4,5}\b|\bdoi:", method.citation), "cite arXiv:NNNN.NNNNN or doi:..."
        assert re.search(rf"\b(?:{VENUES}) ?\d{{4}}", method.citation.replace("\n", " ")), "name the venue and the year"

    async def test_it_answers_from_supplied_evidence(self, method: Method, tmp_path: Path) -> None:
        run = await answered(tmp_path, method.name, {})
        answer = run.answer
        assert (answer.question, answer.short_answer) == (QUESTION, "scripted")
        assert answer.text.strip(), "return the sentence of the answer as `text`"
        assert answer.stop_reason, "say why the method ended"
        chosen = answer.rounds[answer.chosen].draft.short_answer
        assert chosen == answer.short_answer, "`chosen` must be the round of the returned answer"
        known = {one.id for one in EVIDENCE}
        assert {found.passage.id for found in answer.evidence} <= known, "use the supplied evidence alone"
        assert len(run.model.requests) == len(answer.calls) >= 1, "call the model through the session"
        ours = all((row.method, row.question_id) == (CALLED, "q1") for row in answer.calls)
        assert ours, "open the session for the task that was given"
        named = all(run.prompt(request.stage).count(QUESTION) >= 1 for request in run.model.requests)
        assert named, "every prompt contains the question"
        ruled = any(phrase("short_answer_rule") in request.messages[-1].content for request in run.model.requests)
        assert ruled, "ask for the short answer by $short_answer_rule, as all methods do"

    async def test_it_answers_with_a_retriever(self, method: Method, tmp_path: Path) -> None:
        retriever = ListRetriever(numbered_passages(40))
        run = await answered(tmp_path, method.name, at_every_stage(endless), "RETRIEVAL_TOP_K=4", retriever=retriever)
        known = [found.passage.id for found in run.answer.evidence]
        assert run.answer.short_answer.strip(), "return a short answer"
        assert len(set(known)) == len(known), "do not repeat a passage in the evidence"
        for asked, (query, top_k, exclude) in enumerate(retriever.asked):
            assert query.strip(), "search for something"
            assert 1 <= top_k <= 4, "ask for at most RETRIEVAL_TOP_K passages"
            assert exclude == frozenset(known[: 4 * asked]), "a search excludes passages already found"

    async def test_a_failed_first_call_raises(self, method: Method, tmp_path: Path) -> None:
        for fault in (AuthenticationError("no"), BalanceError("no"), RefusedError("no"), ContextWindowError("no")):
            with pytest.raises(type(fault)):
                await answered(tmp_path, method.name, at_every_stage(fault))

    async def test_the_cost_limit_is_respected(self, method: Method, tmp_path: Path) -> None:
        model = ScriptedModel({})
        with pytest.raises(CostLimitError):
            await answered(tmp_path, method.name, {}, "COST_LIMIT_USD=0.0000001", model=model)
        assert not model.requests, "call the model through the session alone"

    async def test_a_question_is_never_read_as_a_template(self, method: Method, tmp_path: Path) -> None:
        question = "What does $question cost, ${x} or {y} or 5 $?"
        run = await answered(tmp_path, method.name, {}, question=question)
        assert run.answer.short_answer == "scripted", "return the model's short answer"
        whole = all(question in request.messages[-1].content for request in run.model.requests)
        assert whole, "fill the question in by a prompt's `text(question=...)`, not by formatting"


@each_baseline
async def test_later_failures_are_raised(name: str, tmp_path: Path) -> None:
    whole = await answered(tmp_path, name, at_every_stage(endless), retriever=ListRetriever(numbered_passages(40)))
    for made in range(len(whole.answer.calls)):
        script = at_every_stage(failing_after(made, CostLimitError("no")))
        with pytest.raises(CostLimitError):
            await answered(tmp_path, name, script, retriever=ListRetriever(numbered_passages(40)))


@each_baseline
async def test_it_terminates_with_a_never_ending_model(name: str, tmp_path: Path) -> None:
    run = await answered(tmp_path, name, at_every_stage(endless), retriever=ListRetriever(numbered_passages(200)))
    assert len(run.answer.calls) <= MAX_CALLS, f"end after at most {MAX_CALLS} calls, whatever the model says"
    last = len(run.answer.rounds) - 1
    assert run.answer.rounds[-1].index == run.answer.chosen == last, "number rounds from 0, and choose the last"
    counted = sum(round_.calls for round_ in run.answer.rounds) == len(run.answer.calls)
    assert counted, "every call belongs to one round"
    assert all(round_.draft.short_answer.strip() for round_ in run.answer.rounds), "every round has a short answer"


@each_baseline
@pytest.mark.parametrize(
    "step",
    [
        "I would rather not.",
        universal_reply(thought="", action="", argument="", needed=True, follow_up=" ", correct=False),
        universal_reply(action="search", argument="Oslo", needed=True, follow_up="Oslo?", correct=False),
        universal_reply(action="finish", argument="  ", needed=True, follow_up="none", correct=False),
    ],
    ids=["prose", "blank", "repeated", "unfinished"],
)
async def test_malformed_intermediate_replies_still_lead_to_an_answer(name: str, step: Any, tmp_path: Path) -> None:
    for retriever in (None, ListRetriever(())):
        run = await answered(tmp_path, name, {"step": step}, retriever=retriever)
        assert run.answer.short_answer == "scripted", "answer from what is known if a step cannot be read"
        assert len(run.answer.calls) <= MAX_CALLS + 6, "each malformed reply is requested once more"


@each_baseline
async def test_a_malformed_final_answer_yields_no_answer(name: str, tmp_path: Path) -> None:
    with pytest.raises(StructuredOutputError):
        await answered(tmp_path, name, at_every_stage("I would rather not."))


@each_baseline
async def test_earlier_evidence_stays_at_the_start_of_the_prompt(name: str, tmp_path: Path) -> None:
    """New evidence is appended, so that the provider's prefix cache still applies."""
    run = await answered(tmp_path, name, at_every_stage(endless), retriever=ListRetriever(numbered_passages(40)))
    shown = [
        re.findall(r'<passage n="\d+" title="(.*?)">', request.messages[-1].content) for request in run.model.requests
    ]
    for before, later in pairwise(titles for titles in shown if titles):
        assert later[: len(before)] == before, "append new passages to those that were shown before"
