"""What each baseline does beyond the contract of all methods: whom it asks, what it searches, and how it ends."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from benchmarks.methods import ircot
from benchmarks.methods.chain_of_thought import ChainOfThought
from benchmarks.methods.flare import UNMEASURED, UNSPELT
from benchmarks.methods.hipporag import EXPANSIONS
from benchmarks.methods.self_consistency import majority
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.prompts import phrase
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.passage import Passage
from meta_agent_rag.retrieval.supplied import SuppliedRetriever
from meta_agent_rag.testing import ScriptedModel
from tests.loop import QUESTION, Run, passage
from tests.methods import ListRetriever, answered, numbered_passages

CONCLUSION = {"answer": "It is Oslo.", "short_answer": "Oslo"}
DIRECTED, BORN, DONE = "Mira Holt directed The Salt Road.", "Mira Holt was born in Oslo.", "So the answer is Oslo."


@pytest.mark.parametrize("name", ["standard_rag", "chain_of_thought"])
async def test_one_retrieval_and_one_call(name: str, tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(9))
    run = await answered(tmp_path, name, {}, "RETRIEVAL_TOP_K=3", retriever=retriever, question="Where?")
    assert retriever.asked == [("Where?", 3, frozenset())]
    assert run.stages == ["baseline"]
    assert [one.text in run.prompt("baseline") for one in numbered_passages(4)] == [True, True, True, False]


async def test_closed_book_shows_no_evidence(tmp_path: Path) -> None:
    unused = ListRetriever(numbered_passages(3))
    for retriever in (None, unused):
        run = await answered(tmp_path, "closed_book", {}, retriever=retriever)
        assert "<passage" not in run.prompt("baseline")
        assert run.answer.evidence == ()
    assert not unused.asked


async def test_the_majority_of_independent_samples_wins(tmp_path: Path) -> None:
    shorts = {"Paris": "", "oslo.": "First.", "Rome": "", "Oslo": "Second."}
    script = {"baseline": [{"rationale": text or "So.", "short_answer": short} for short, text in shorts.items()]}
    run = await answered(tmp_path, "self_consistency", script, "SELF_CONSISTENCY_SAMPLES=4", "RESPONSE_CACHE=true")
    assert (run.answer.short_answer, run.answer.text, run.answer.stop_reason) == ("oslo.", "First.", "majority")
    assert sorted(request.draw for request in run.model.requests) == [0, 1, 2, 3]
    assert {request.temperature for request in run.model.requests} == {0.7}
    assert len({request.messages for request in run.model.requests}) == 1


@given(st.lists(st.sampled_from(["Oslo", "the oslo", "Rome", "rome.", "Bern"]), min_size=1, max_size=9))
def test_the_elected_answer_has_the_most_votes(shorts: list[str]) -> None:
    plain = [short.lower().removeprefix("the ").rstrip(".") for short in shorts]
    chains = [ChainOfThought(rationale=str(place), short_answer=short) for place, short in enumerate(shorts)]
    place = int(majority(chains).rationale)
    assert plain.count(plain[place]) == max(plain.count(short) for short in plain)
    assert plain.index(plain[place]) == place


def step(action: str, argument: str, thought: str = "Something is missing.") -> dict[str, str]:
    return {"thought": thought, "action": action, "argument": argument}


def observations(run: Run) -> list[str]:
    """ReAct's observations in the last prompt."""
    lines = run.prompt(run.stages[-1], -1).splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Observation")]


PARK = (
    passage("park", "Alder Park lies in Oslo. It is old. The park has a mill, run by <b> Holt."),
    passage("mill", "A mill turns. The MILL of Holt is wooden </passage> and tall."),
)


async def test_react_searches_looks_up_and_finishes(tmp_path: Path) -> None:
    looks = [step("lookup", "mill")] * 3
    steps = [step("search", "park"), *looks, step("finish", "Oslo", "The park is in Oslo.")]
    retriever = ListRetriever(PARK)
    run = await answered(tmp_path, "react", {"step": steps}, retriever=retriever)
    assert (run.answer.short_answer, run.answer.text) == ("Oslo", "The park is in Oslo.")
    assert run.answer.stop_reason == "finished"
    assert run.stages == ["step"] * 5, "neither a search nor a lookup calls a model"
    assert retriever.queries == ["park"]
    assert "<passage" not in run.prompt("step", 0), "it starts without evidence"
    assert "Thought 1: Something is missing.\nAction 1: search[park]\nObservation 1:" in run.prompt("step", 4)
    assert observations(run)[1:] == [
        '(Result 1 / 3) <passage n="1">The park has a mill, run by &lt;b&gt; Holt.</passage>',
        '(Result 2 / 3) <passage n="2">A mill turns.</passage>',
        '(Result 3 / 3) <passage n="2">The MILL of Holt is wooden &lt;/passage&gt; and tall.</passage>',
    ]


@pytest.mark.parametrize(
    ("steps", "key"),
    [
        ([step("search", "park"), step("search", "PARK!")], "action_repeated"),
        ([step("search", "park"), step("lookup", "Rome")], "no_more_results"),
        ([step("search", "park"), step("search", "Rome")], "nothing_found"),
        ([step("read", "park")], "unknown_action"),
        ([step("finish", " ")], "action_without_argument"),
    ],
)
async def test_an_error_of_react_becomes_an_observation(steps: list[Any], key: str, tmp_path: Path) -> None:
    script = {"step": [*steps, step(" Finish ", "Oslo")]}
    run = await answered(tmp_path, "react", script, retriever=ListRetriever(PARK))
    assert observations(run)[-1] == phrase(key)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "finished")


async def test_reflexions_next_trial_reads_the_reflection(tmp_path: Path) -> None:
    wrong = {"reason": "Wrong city.", "correct": False}
    steps = [wrong, {"reflection": "Read twice."}, wrong, {"reflection": "Mind the name."}]
    trials = [{"rationale": f"It must be {short}.", "short_answer": short} for short in ("Rome", "Bern", "Oslo")]
    retriever = ListRetriever(numbered_passages(9))
    run = await answered(tmp_path, "reflexion", {"baseline": trials, "step": steps}, retriever=retriever)
    assert run.stages == ["baseline", "step", "step", "baseline", "step", "step", "baseline"]
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "max_trials")
    assert "Why it was judged wrong: Wrong city." in run.prompt("step", 1)
    assert "- Read twice.\n- Mind the name." in run.prompt("baseline", 2)
    assert len(retriever.asked) == 1, "all trials read the same evidence"
    assert [round_.calls for round_ in run.answer.rounds] == [2, 3, 2]


async def test_self_ask_answers_follow_ups_and_concludes(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(8))
    asked = [{"needed": True, "follow_up": question} for question in ("Who made it?", "Where is Holt from?")]
    said = [{"intermediate_answer": answer} for answer in ("Holt", "Oslo")]
    steps = [asked[0], said[0], asked[1], said[1], {"needed": False, "follow_up": ""}]
    run = await answered(tmp_path, "self_ask", {"step": steps, "baseline": CONCLUSION}, retriever=retriever)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "no_follow_up")
    assert retriever.queries == ["Who made it?", "Where is Holt from?"], "the question itself is not searched for"
    assert "Follow-up question: Who made it?\nIntermediate answer: Holt" in run.prompt("step", 2)
    assert "Follow-up question: Where is Holt from?\nIntermediate answer: Oslo" in run.prompt("baseline")


async def test_search_o1_searches_reads_and_concludes(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(8))
    steps = [
        "The director is not known yet.\n<search> director of The Salt Road ",
        "Mira Holt directed The Salt Road.",
        "Her birthplace is missing. <search>Mira Holt birthplace</search> and more",
        "  ",
        "So the answer is Oslo.",
    ]
    run = await answered(tmp_path, "search_o1", {"step": steps, "baseline": CONCLUSION}, retriever=retriever)
    assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "concluded")
    assert retriever.queries == ["director of The Salt Road", "Mira Holt birthplace"]
    assert numbered_passages(5)[0].text in run.prompt("step", 1)
    for chain in (run.prompt("step", 4), run.prompt("baseline")):
        assert "Result: Mira Holt directed The Salt Road." in chain
        assert f"Search: Mira Holt birthplace\nResult: {phrase('not_found')}" in chain
        assert "<passage" not in chain, "only the reader sees passages"


@pytest.mark.parametrize("steps", [["", "unused"], ["<search></search>"], ["<search>park", "A fact.", "<search>PARK!"]])
async def test_a_fruitless_step_ends_search_o1(steps: list[str], tmp_path: Path) -> None:
    run = await answered(tmp_path, "search_o1", {"step": steps}, retriever=ListRetriever(numbered_passages(8)))
    assert run.answer.stop_reason == "no_progress"


async def test_ircot_searches_for_every_sentence(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(9))
    script = {"step": [f"{DIRECTED} {BORN}", DONE], "baseline": {"rationale": "It is.", "short_answer": "Oslo"}}
    run = await answered(tmp_path, "ircot", script, "RETRIEVAL_TOP_K=3", retriever=retriever)
    assert retriever.queries == [QUESTION, DIRECTED], "one sentence per step, and none after the conclusion"
    assert (run.stages, run.answer.stop_reason) == (["step", "step", "baseline"], "concluded")
    assert f"Reasoning so far:\n{DIRECTED}\n" in run.prompt("step", 1)
    assert DIRECTED not in run.prompt("baseline"), "the reader starts with the passages"
    assert all(one.text in run.prompt("baseline") for one in numbered_passages(6))


@pytest.mark.parametrize(
    ("top_k", "there", "sentences", "reason"),
    [(5, 40, 2, "max_passages"), (5, 7, 2, "nothing_new"), (1, 40, 5, "max_steps")],
)
async def test_ircot_is_limited(top_k: int, there: int, sentences: int, reason: str, tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(there))
    script = {"step": [f"Holt was in {one.title}." for one in numbered_passages(12)]}
    run = await answered(tmp_path, "ircot", script, f"RETRIEVAL_TOP_K={top_k}", retriever=retriever)
    assert run.stages == ["step"] * sentences + ["baseline"]
    assert run.answer.stop_reason == reason
    assert len(run.answer.evidence) <= ircot.PASSAGES


class ModelWithProbabilities(ScriptedModel):
    """A scripted model with token probabilities: nearly certain, unless `doubts` says otherwise."""

    doubts: dict[str, float] = Field(default_factory=dict)
    garbled: bool = False

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        words = reply.text.split(" ")
        pieces = ["\ufffd"] if self.garbled else [words[0], *(f" {word}" for word in words[1:])]
        tokens = tuple((piece, math.log(self.doubts.get(piece.strip(), 0.99))) for piece in pieces)
        return Reply(text=reply.text, usage=reply.usage, tokens=tokens if request.logprobs else None)


async def test_flare_looks_up_and_rewrites_an_unsure_sentence(tmp_path: Path) -> None:
    retriever = ListRetriever(numbered_passages(40))
    doubts = {"Gorse.": 0.3, "directed": 0.5}
    model = ModelWithProbabilities(script={"step": ["Mira Holt directed Gorse.", BORN, DONE]}, doubts=doubts)
    run = await answered(tmp_path, "flare", {}, retriever=retriever, model=model)
    assert retriever.queries == [QUESTION, "Mira Holt directed"], "the least certain words are left out of the query"
    assert run.stages == ["step"] * 3 + ["baseline"]
    assert f"Reasoning so far:\n{BORN}\n{DONE}" in run.prompt("baseline"), "the first attempt is discarded"
    assert numbered_passages(6)[5].text in run.prompt("step", 1)
    assert (run.answer.stop_reason, run.answer.notes) == ("concluded", ())


@pytest.mark.parametrize("garbled", [True, False])
async def test_flare_looks_up_every_sentence_whose_probabilities_are_unknown(tmp_path: Path, garbled: bool) -> None:
    retriever = ListRetriever(numbered_passages(40))
    script = {"step": [DIRECTED, DIRECTED, BORN, BORN, DONE, DONE]}
    model = ModelWithProbabilities(script=script, garbled=True) if garbled else ScriptedModel(script)
    run = await answered(tmp_path, "flare", {}, retriever=retriever, model=model)
    assert retriever.queries == [QUESTION, DIRECTED, BORN, DONE]
    assert run.answer.notes == ((UNSPELT if garbled else UNMEASURED),)
    asked = [request.logprobs for request in run.model.requests]
    assert asked == [*([True] * 6 if garbled else [True, *[False] * 5]), False], "asked in vain only once"


WHERE = "Where was the director of Salt Road born?"


def held(id_: str, title: str, text: str) -> Passage:
    return Passage(id=id_, doc_id=id_, title=title, text=text)


FILM = held("film", "Salt Road", "Salt Road is a film by Mira Holt.")
PERSON = held("person", "Mira Holt", "Mira Holt was born in the town of Alder Bay.")
OTHER = held("other", "Salt trade", "The trade in salt was old.")
MILL = held("mill", "Holt Mill", "The mill of the town of Cedar Bay turns.")


async def test_hipporag_reads_the_passages_with_the_most_activation(tmp_path: Path) -> None:
    """The passage on the person shares no word with the question; only the film's director leads to it."""
    encoder = AsyncEncoder(HashEncoder())
    retriever = SuppliedRetriever(passages=(OTHER, MILL, PERSON, FILM), encoder=encoder)
    script = {"baseline": {"rationale": "She was born there.", "short_answer": "Alder Bay"}}
    run = await answered(tmp_path, "hipporag", script, "RETRIEVAL_TOP_K=2", question=WHERE, retriever=retriever)
    assert run.stages == ["baseline"], "retrieval calls no model"
    assert run.answer.rounds[0].packing.packed_ids == ("film", "person")
    listed = ListRetriever(numbered_passages(60))
    await answered(tmp_path, "hipporag", {}, retriever=listed)
    assert len(listed.queries) == len(set(listed.queries)) == 1 + EXPANSIONS, "each name is searched for once"
