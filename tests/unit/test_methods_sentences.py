"""IRCoT and FLARE: reasoning written, and used for retrieval, one sentence at a time."""

import math
from pathlib import Path

import pytest
from pydantic import Field

from benchmarks.methods import ircot
from benchmarks.methods.flare import UNMEASURED, UNSPELT
from benchmarks.methods.inquiry import next_sentence
from meta_agent_rag.errors import RefusedError
from meta_agent_rag.llm.messages import Reply, Request
from meta_agent_rag.prompts import phrase
from meta_agent_rag.testing import ScriptedModel
from tests.loop import QUESTION
from tests.methods import ListRetriever, answered, numbered_passages

DIRECTED = "Mira Holt directed The Salt Road."
BORN = "Mira Holt was born in Oslo."
DONE = "So the answer is Oslo."
SURE = math.log(0.99)
Tokens = tuple[tuple[str, float], ...]


def spelt(text: str, doubts: dict[str, float]) -> Tokens:
    """The words of a text as tokens, with the probabilities given in `doubts`."""
    words = text.split(" ")
    pieces = [words[0], *(f" {word}" for word in words[1:])]
    return tuple((piece, math.log(doubts.get(piece.strip(), 0.99))) for piece in pieces)


class ModelWithProbabilities(ScriptedModel):
    """A scripted model with token probabilities: nearly certain, unless `doubts` says otherwise."""

    doubts: dict[str, float] = Field(default_factory=dict)
    refuses: bool = False

    async def complete(self, request: Request) -> Reply:
        if self.refuses and request.logprobs:
            self.requests.append(request)
            raise RefusedError("no such thing as logprobs")
        reply = await super().complete(request)
        return Reply(
            text=reply.text, usage=reply.usage, tokens=spelt(reply.text, self.doubts) if request.logprobs else None
        )


def test_the_next_sentence_is_the_first_new_one() -> None:
    assert next_sentence("  One is here. Two is there.\nThree.", []) == "One is here."
    assert next_sentence("one is HERE", ["One is here."]) == ""
    assert next_sentence("Two is there. Three.", ["One is here."]) == "Two is there."
    assert next_sentence(" \n ", []) == next_sentence("...", []) == ""


class TestIrcot:
    """Every sentence becomes a query."""

    async def test_every_sentence_is_searched_for(self, tmp_path: Path) -> None:
        retriever = ListRetriever(numbered_passages(9))
        script = {"step": [f"{DIRECTED} {BORN}", DONE], "baseline": {"rationale": "It is.", "short_answer": "Oslo"}}
        run = await answered(tmp_path, "ircot", script, "RETRIEVAL_TOP_K=3", retriever=retriever)
        assert retriever.queries == [QUESTION, DIRECTED], "one sentence per step, and none after the conclusion"
        assert run.stages == ["step", "step", "baseline"]
        assert (run.answer.short_answer, run.answer.stop_reason) == ("Oslo", "concluded")
        assert phrase("nothing_yet") in run.prompt("step", 0)
        assert f"Reasoning so far:\n{DIRECTED}\n" in run.prompt("step", 1)
        assert DIRECTED not in run.prompt("baseline"), "the reader starts with the passages"
        assert all(one.text in run.prompt("baseline") for one in numbered_passages(6))

    @pytest.mark.parametrize(
        ("top_k", "there", "sentences", "reason"),
        [(5, 40, 2, "max_passages"), (4, 40, 3, "max_passages"), (5, 7, 2, "nothing_new"), (1, 40, 5, "max_steps")],
    )
    async def test_sentences_and_passages_are_limited(
        self, top_k: int, there: int, sentences: int, reason: str, tmp_path: Path
    ) -> None:
        retriever = ListRetriever(numbered_passages(there))
        script = {"step": [f"Holt was in {one.title}." for one in numbered_passages(12)]}
        run = await answered(tmp_path, "ircot", script, f"RETRIEVAL_TOP_K={top_k}", retriever=retriever)
        assert run.stages == ["step"] * sentences + ["baseline"]
        assert run.answer.stop_reason == reason
        assert len(run.answer.evidence) <= ircot.PASSAGES
        assert sentences <= ircot.SENTENCES


class TestFlare:
    """A sentence is looked up only if the model is unsure of it."""

    async def test_a_confident_sentence_is_kept(self, tmp_path: Path) -> None:
        retriever = ListRetriever(numbered_passages(40))
        run = await answered(
            tmp_path, "flare", {}, retriever=retriever, model=ModelWithProbabilities(script={"step": [DIRECTED, DONE]})
        )
        assert retriever.queries == [QUESTION]
        assert run.stages == ["step", "step", "baseline"]
        assert f"Reasoning so far:\n{DIRECTED}\n{DONE}" in run.prompt("baseline")
        assert (run.answer.stop_reason, run.answer.notes) == ("concluded", ())
        assert [request.logprobs for request in run.model.requests] == [True, True, False]

    async def test_an_unsure_sentence_is_looked_up_and_rewritten(self, tmp_path: Path) -> None:
        retriever = ListRetriever(numbered_passages(40))
        model = ModelWithProbabilities(
            script={"step": ["Mira Holt directed Gorse.", BORN, DONE]}, doubts={"Gorse.": 0.3, "directed": 0.5}
        )
        run = await answered(tmp_path, "flare", {}, retriever=retriever, model=model)
        assert retriever.queries == [QUESTION, "Mira Holt directed"], (
            "the least certain words are left out of the query"
        )
        assert run.stages == ["step"] * 3 + ["baseline"]
        assert f"Reasoning so far:\n{BORN}\n{DONE}" in run.prompt("baseline"), "the first attempt is discarded"
        assert numbered_passages(6)[5].text in run.prompt("step", 1)

    async def test_without_log_probabilities_every_sentence_is_looked_up(self, tmp_path: Path) -> None:
        retriever = ListRetriever(numbered_passages(40))
        script = {"step": [DIRECTED, DIRECTED, BORN, BORN, DONE, DONE]}
        run = await answered(tmp_path, "flare", script, retriever=retriever)
        assert retriever.queries == [QUESTION, DIRECTED, BORN, DONE]
        assert run.answer.notes == (UNMEASURED,)
        assert [request.logprobs for request in run.model.requests] == [True] + [False] * 6, "requested only once"

    async def test_tokens_that_do_not_spell_the_sentence_are_handled(self, tmp_path: Path) -> None:
        class ModelWithGarbledTokens(ModelWithProbabilities):
            async def complete(self, request: Request) -> Reply:
                reply = await super().complete(request)
                return Reply(
                    text=reply.text, usage=reply.usage, tokens=(("\ufffd", SURE),) if request.logprobs else None
                )

        retriever = ListRetriever(numbered_passages(40))
        run = await answered(
            tmp_path, "flare", {}, retriever=retriever, model=ModelWithGarbledTokens(script={"step": DONE})
        )
        assert retriever.queries == [QUESTION, DONE]
        assert run.answer.notes == (UNSPELT,)
