"""Grounded answers as shown to the user: every reason for refusal, and what the checks change in the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from meta_agent_rag.agent.engine import open_engine
from meta_agent_rag.agent.grounded import Checks, GroundedAnswer
from meta_agent_rag.agent.prompting import without_marks
from meta_agent_rag.chat.session import GroundedAnswerer
from meta_agent_rag.errors import CostLimitError, RefusedError
from meta_agent_rag.grounding.abstention import refusal
from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.encoders.hashing import HashEncoder
from meta_agent_rag.retrieval.hybrid import Retrieval
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import BIRTH_SENTENCE, FILM_SENTENCE, QUESTION, critique, draft, second_answer, settings_in

BIRTH_TEXT = f"{BIRTH_SENTENCE} She left the city at nineteen and sailed to Bergen with 14 crates of film."
NOVEL_TEXT = "A letter of Mira Holt says that in the novel the sea is a person. It was never sent."
PASSAGES = (
    Passage(id="film", doc_id="films", title="The Salt Road", text=FILM_SENTENCE, start_page=3, end_page=3),
    Passage(
        id="birth", doc_id="lives", title="Mira Holt", text=BIRTH_TEXT,
        section="Early life", start_page=7, end_page=8, span=(100, 100 + len(BIRTH_TEXT)),
    ),
    Passage(id="novel", doc_id="letters", title="Letters", text=NOVEL_TEXT),
)  # fmt: skip
SAID = "Mira Holt was born in Oslo [2]."


@dataclass(frozen=True, kw_only=True)
class FixedRetriever:
    """Returns the same passages with the same scores for every query."""

    passages: Sequence[Passage] = PASSAGES

    async def retrieve(self, queries: Sequence[str], *, k: int, exclude: frozenset[str] = frozenset()) -> Retrieval:
        found = (Found(passage=item, score=1.0, dense=0.9, lexical=12.0) for item in self.passages)
        return Retrieval(found=tuple(found)[:k])


def answering(
    answer: str = SAID, *, quotes: Sequence[str] = (BIRTH_SENTENCE,), short: str = "Oslo"
) -> dict[str, Scripted]:
    """A script with this draft and an agreeing second answer."""
    written = draft(short, quotes=quotes, answer=answer) | {"confidence": 0.9}
    return {"write": written, "second_answer": second_answer(short)}


def verdicts(*claims: Mapping[str, Any], answers: bool = True, sufficient: bool = True) -> Mapping[str, Any]:
    """A reply of the critic."""
    return {"sufficient": sufficient, "claims": list(claims), "answers_question": answers}


async def grounded(
    folder: Path,
    script: Mapping[str, Scripted],
    *assignments: str,
    question: str = QUESTION,
    retriever: FixedRetriever | None = None,
    model: ScriptedModel | None = None,
) -> GroundedAnswer:
    settings = settings_in(folder, *assignments)
    model = model or ScriptedModel(script)
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        companion = GroundedAnswerer(engine=engine, retriever=retriever or FixedRetriever(), checks=Checks.of(settings))
        reply = await companion(question, question)
    assert (reply.text, reply.short_answer) == (reply.grounded.text, reply.grounded.short_answer)
    return reply.grounded


def assert_refused(reply: GroundedAnswer, reason: str) -> None:
    assert reply.refused == reason
    assert reply.text.startswith(refusal(reply.refused))
    assert (reply.short_answer, reply.citations, reply.quotes, reply.removed) == ("", (), (), 0)
    assert reply.question == QUESTION


async def test_a_supported_answer_is_shown_with_its_citation(tmp_path: Path) -> None:
    reply = await grounded(tmp_path, answering())
    assert (reply.text, reply.short_answer, reply.refused) == (
        "Mira Holt was born in Oslo [Mira Holt, p.7-8].",
        "Oslo",
        None,
    )
    (citation,) = reply.citations
    assert (citation.doc_id, citation.passage_id, citation.section) == ("lives", "birth", "Early life")
    assert citation.span == (100, 100 + len(BIRTH_SENTENCE) - 1)
    assert (citation.scores.dense, citation.scores.lexical) == (0.9, 12.0)
    assert reply.quotes == (BIRTH_SENTENCE,)
    ((claim, support),) = reply.claims
    assert (claim.text, claim.marks, support.supported, support.passage_id) == (
        "Mira Holt was born in Oslo.", (2,), True, "birth",
    )  # fmt: skip
    assert support.words == (BIRTH_SENTENCE,)
    assert reply.confidence is not None
    assert reply.confidence.score > 0.8
    assert [row.stage for row in reply.calls] == ["write", "second_answer"]
    assert reply.calls == reply.answer.calls


# -- refusals


async def test_no_model_is_called_without_passages(tmp_path: Path) -> None:
    reply = await grounded(tmp_path, {}, retriever=FixedRetriever(passages=()))
    assert_refused(reply, "no_evidence")
    assert reply.calls == ()


@pytest.mark.parametrize(
    ("answer", "short"),
    [
        ("NOT FOUND", "NOT FOUND"),
        ("Not found.", "Oslo"),
        ("She was born in Oslo [2].", "not found"),
        ("", ""),
        ("I could not find this in the documents.", ""),
        ("The passages do not say where she was born.", "not stated in the passages"),
        (None, None),
    ],
)
@pytest.mark.parametrize("quotes", [(), (BIRTH_SENTENCE,)])
async def test_an_abstention_is_recognised_in_any_wording(
    tmp_path: Path, answer: str | None, short: str | None, quotes: Sequence[str]
) -> None:
    written = {"quotes": list(quotes), "answer": answer, "short_answer": short, "confidence": 0.9}
    model = ScriptedModel({"write": written, "rewrite": written, "second_answer": second_answer("NOT FOUND")})
    reply = await grounded(tmp_path, {}, model=model, retriever=FixedRetriever())
    assert_refused(reply, "not_found")
    assert reply.answer.short_answer in {"NOT FOUND", "Oslo"}, "the graph's state says so in one wording"
    assert len(model.asked("write")) == 1, "an abstention is not retried"


@pytest.mark.parametrize("quotes", [(), ("Mira Holt was born in Bergen.",), ("",), ('"."',)])
async def test_an_answer_with_invented_quotes_is_refused(tmp_path: Path, quotes: tuple[str, ...]) -> None:
    assert_refused(await grounded(tmp_path, answering(quotes=quotes)), "invented_quotes")


async def test_a_near_verbatim_quote_is_shown_in_the_passages_wording(tmp_path: Path) -> None:
    copied = "She left the city at nineteen and sailed on to Bergen with 14 crates"
    said = answering("She sailed to Bergen [2].", short="Bergen", quotes=(copied,))
    reply = await grounded(tmp_path, said, question="Who sailed at nineteen?")
    assert reply.quotes == ("She left the city at nineteen and sailed to Bergen with 14 crates of film.",)
    assert_refused(await grounded(tmp_path, answering(quotes=(copied.replace("14", "15"),))), "invented_quotes")


@pytest.mark.parametrize(
    "answer",
    [
        "Based on my knowledge, Mira Holt was born in Oslo [2].",
        "It can be assumed that Mira Holt was born in Oslo [2].",
        "In the novel Mira Holt was born in Oslo [2].",
    ],
)
async def test_an_answer_that_leaks_outside_knowledge_is_refused(tmp_path: Path, answer: str) -> None:
    reply = await grounded(tmp_path, answering(answer))
    assert_refused(reply, "leakage")
    assert len(reply.leaks) == 1
    assert reply.leaks[0] in answer.lower()


@pytest.mark.parametrize(
    ("answer", "short"),
    [
        ("Mira Holt was born in Bergen in 1912 [2].", "Bergen"),
        ("Henrik Ibsen wrote Peer Gynt [2].", "Henrik Ibsen"),
        (f"{BIRTH_SENTENCE[:-1]} [2]. Henrik Ibsen wrote it [2].", "Henrik Ibsen"),
        (f"{BIRTH_SENTENCE[:-1]} [2].", "Henrik Ibsen"),
    ],
)
async def test_an_unsupported_answer_is_refused(tmp_path: Path, answer: str, short: str) -> None:
    reply = await grounded(tmp_path, answering(answer, short=short), question="Who wrote Peer Gynt?")
    assert reply.refused == "unsupported"
    assert reply.text.startswith(refusal("unsupported"))
    assert (reply.short_answer, reply.citations) == ("", ())
    assert reply.claims


def test_only_the_packaged_model_is_not_asked_as_critic(tmp_path: Path) -> None:
    (own := tmp_path / "own.gguf").write_bytes(b"GGUF")
    usual = [f"MARAG_DATA_DIR={tmp_path}", "LLM_PROVIDER=embedded"]
    assert Checks.of(Settings.load(usual)).claim_check == "exact"
    assert Checks.of(Settings.load([*usual, f"EMBEDDED_MODEL_PATH={own}"])).claim_check == "critic"
    assert Checks.of(Settings.load([*usual, "CLAIM_CHECK=critic"])).claim_check == "critic"


# -- the critic

TWO = "Mira Holt was born in Oslo [2]. At nineteen she went to sea, bound for Bergen [2]."
SAILED = "She left the city at nineteen and sailed to Bergen with 14 crates of film."
BORN: Mapping[str, Any] = {"claim": 1, "words": [BIRTH_SENTENCE], "verdict": "supported"}
WENT: Mapping[str, Any] = {"claim": 2, "words": [SAILED], "verdict": "supported"}
CRITIC = "CLAIM_CHECK=critic"


def judged(*claims: Mapping[str, Any], answer: str = TWO, **of_all: Any) -> dict[str, Scripted]:
    return {**answering(answer), "check_claims": verdicts(*claims, **of_all)}


def supported(reply: GroundedAnswer) -> Sequence[bool]:
    return [support.supported for _, support in reply.claims]


async def test_the_critic_judges_all_claims_in_one_call(tmp_path: Path) -> None:
    model = ScriptedModel(judged(BORN, WENT, {"claim": 17, "words": ["film"], "verdict": "supported"}))
    reply = await grounded(tmp_path, {}, CRITIC, model=model)
    assert (reply.refused, supported(reply)) == (None, [True, True])
    assert reply.claims[1][1].words == (SAILED,)
    (request,) = model.asked("check_claims")
    asked = request.messages[1].content
    assert "1. Mira Holt was born in Oslo. (passage 2)\n2. At nineteen she went to sea" in asked
    assert BIRTH_TEXT in without_marks(asked)
    assert [row.stage for row in reply.calls] == ["write", "second_answer", "sufficiency", "check_claims"]
    assert len(reply.answer.calls) == 2


@pytest.mark.parametrize(
    "verdict",
    [
        {"claim": 2, "words": [], "verdict": "not stated", "reason": "Sie fuhr nach Bergen."},
        {"claim": 2, "words": ["She went to sea at nineteen, poor girl."], "verdict": "contradicted"},
        {"claim": 2, "words": [SAILED], "verdict": "unsupported"},
        {"claim": 17, "words": [SAILED], "verdict": "supported"},
    ],
)
async def test_a_claim_without_a_yes_is_marked(tmp_path: Path, verdict: Mapping[str, Any]) -> None:
    reply = await grounded(tmp_path, judged(BORN, verdict), CRITIC)
    assert supported(reply) == [True, False]
    assert reply.text.endswith("[unsupported]")


async def test_a_refusal_says_which_claim_failed_and_why_in_the_critics_words(tmp_path: Path) -> None:
    why = "Laut Text in Oslo, siehe https://evil.example/?q=secret."
    no = {"claim": 1, "words": [BIRTH_SENTENCE], "verdict": "contradicted", "reason": why}
    reply = await grounded(tmp_path, judged(no, answer="Mira Holt was born in Rome [2]."), CRITIC)
    assert_refused(reply, "unsupported")
    assert reply.text.endswith("(Mira Holt was born in Rome. \u2013 Laut Text in Oslo, siehe.)")


async def test_a_figure_of_no_passage_needs_a_calculation(tmp_path: Path) -> None:
    said = "She had 28 crates in two years [2]."
    short = "28 crates"
    for calculation, refused in (("14 * 2 = 28", None), ("14 + 15 = 28", "unsupported"), ("", "unsupported")):
        yes = {"claim": 1, "words": [SAILED], "calculation": calculation, "verdict": "supported"}
        script = {**answering(said, quotes=[SAILED], short=short), "check_claims": verdicts(yes)}
        reply = await grounded(tmp_path, script, CRITIC)
        assert reply.refused == refused
        assert ("[derived: 14 \u00d7 2 = 28]" in reply.text) is (refused is None)


async def test_an_answer_without_quotes_is_shown_on_the_words_that_the_critic_copies(tmp_path: Path) -> None:
    script = {**answering("Her life began in Oslo.", quotes=()), "check_claims": verdicts(BORN)}
    reply = await grounded(tmp_path, script, CRITIC, "MAX_METACOGNITIVE_ROUNDS=0")
    assert (reply.refused, reply.quotes) == (None, (BIRTH_SENTENCE,))
    assert [citation.title for citation in reply.citations] == ["Mira Holt"]


async def test_the_critic_may_find_that_the_claims_do_not_answer_the_question(tmp_path: Path) -> None:
    assert_refused(await grounded(tmp_path, judged(BORN, WENT, answers=False), CRITIC), "off_question")


async def test_nothing_is_checked_if_the_passages_do_not_suffice(tmp_path: Path) -> None:
    reply = await grounded(tmp_path, judged(BORN, WENT) | {"sufficiency": {"sufficient": False}}, CRITIC)
    assert_refused(reply, "not_covered")
    assert reply.sufficient == 0.0
    assert "check_claims" not in [row.stage for row in reply.calls]


@pytest.mark.parametrize(("sufficient", "refused"), [(True, None), (False, "not_covered")])
async def test_without_log_probabilities_the_critic_says_it_in_its_one_call(
    tmp_path: Path, sufficient: bool, refused: str | None
) -> None:
    plain = ("LLM_PROVIDER=groq", "GROQ_API_KEY=none")
    reply = await grounded(tmp_path, judged(BORN, WENT, sufficient=sufficient), CRITIC, *plain)
    assert (reply.refused, reply.sufficient) == (refused, float(sufficient))
    assert [row.stage for row in reply.calls][2:] == ["check_claims"]


@pytest.mark.parametrize("fault", [RefusedError("no"), CostLimitError("spent")])
async def test_code_decides_if_the_critic_fails(tmp_path: Path, fault: Exception) -> None:
    def fail(_: Any) -> Any:
        raise fault

    reply = await grounded(tmp_path, {**answering(TWO), "check_claims": fail}, CRITIC)
    assert supported(reply) == [True, False]


# -- the prompt and progress reports


async def test_the_evidence_of_a_grounded_answer_fills_the_budget(tmp_path: Path) -> None:
    many = [Passage(id=f"p{n}", doc_id="d", title="Log", text=f"Day {n}: nothing new. " * 10) for n in range(40)]
    retriever = FixedRetriever(passages=(*PASSAGES, *many))
    for setting, count in (("EVIDENCE_TOKENS=6000", 20), ("EVIDENCE_TOKENS=600", 6), ("RETRIEVAL_TOP_K=5", 5)):
        reply = await grounded(tmp_path, answering(), setting, retriever=retriever)
        assert reply.refused is None
        assert len(reply.answer.evidence) == len(reply.answer.rounds[0].packing.packed_ids) == count


async def test_a_missing_quote_is_requested_again(tmp_path: Path) -> None:
    rewrites = [draft("Oslo", answer="Her life began there [2]."), draft("Oslo", quotes=[BIRTH_SENTENCE], answer=SAID)]
    script: Mapping[str, Scripted] = {
        **answering(quotes=()), "evaluate": critique("external_only"), "rewrite": rewrites
    }  # fmt: skip
    assert (await grounded(tmp_path, script)).refused is None


async def test_an_answer_of_the_wrong_kind_is_not_shown(tmp_path: Path) -> None:
    for short in ("Oslo", ""):
        reply = await grounded(tmp_path, answering(short=short), question="In which year was Mira Holt born?")
        assert (reply.refused, reply.text) == ("off_question", refusal("off_question"))


async def test_only_the_writer_sees_the_conversation(tmp_path: Path) -> None:
    model = ScriptedModel(answering())
    settings = settings_in(tmp_path)
    async with open_engine(settings, model=model, monitor_encoder=AsyncEncoder(HashEncoder())) as engine:
        companion = GroundedAnswerer(engine=engine, retriever=FixedRetriever(), checks=Checks.of(settings))
        await companion("In German please", QUESTION, before="User: Where?\nAssistant: Oslo.")
    write, other = (request.messages[-1].content for request in model.requests)
    assert "<conversation>\nUser: Where?\nAssistant: Oslo.\n</conversation>" in write
    assert "<conversation>" not in other, "all other calls share one prompt prefix"
