"""Rewriting follow-ups into standalone questions, and the rules for a rewrite."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.chat.history import History
from meta_agent_rag.chat.rewriter import RULES, Rewritten, as_query, asks_to_restate, broken_rule, rewritten
from meta_agent_rag.chat.self_contained import stands_alone
from meta_agent_rag.errors import AuthenticationError, BudgetError, ContextWindowError, DeadlineError, ModelError
from meta_agent_rag.llm.opening import open_language_model
from meta_agent_rag.testing import Scripted, ScriptedModel
from tests.loop import settings_in, user_text

SAMPLE = Path(__file__).parents[2] / "benchmarks" / "sample" / "questions.json"
QUESTIONS = [row["question"] for row in json.loads(SAMPLE.read_text(encoding="utf-8"))]
HISTORY = History().with_exchange(
    question="Who directed The Salt Road?",
    answer="Mira Holt directed it [1].",
    standalone="Who directed The Salt Road?",
)


async def asked(
    folder: Path, question: str, reply: Scripted, history: History = HISTORY
) -> tuple[Rewritten, ScriptedModel]:
    model = ScriptedModel({"rewrite_query": reply})
    async with open_language_model(settings_in(folder), model=model) as opened:
        return await rewritten(question, history, opened.session()), model


async def test_a_pronoun_is_replaced_by_its_name(tmp_path: Path) -> None:
    query, model = await asked(tmp_path, "Where was she born?", "Where was Mira Holt born?")
    assert query == Rewritten(query="Where was Mira Holt born?", how="rewritten")
    (request,) = model.requests
    assert (request.stage, request.model) == ("rewrite_query", "deepseek-v4-flash")
    shown = user_text(request)
    assert "User: Who directed The Salt Road?\nAssistant: Mira Holt directed it [1]." in shown
    assert shown.endswith("Last question: Where was she born?")


async def test_the_first_turn_makes_no_call(tmp_path: Path) -> None:
    query, model = await asked(tmp_path, "Where was she born?", "x", history=History())
    assert query == Rewritten(query="Where was she born?", how="nothing_before")
    assert model.requests == []


async def test_a_topic_switch_makes_no_call(tmp_path: Path) -> None:
    question = "Who designed the Pennant Bridge?"
    query, model = await asked(tmp_path, question, "Who designed the Pennant Bridge in The Salt Road by Mira Holt?")
    assert query == Rewritten(query=question, how="stands_alone")
    assert model.requests == []


async def test_a_summary_alone_suffices_as_history(tmp_path: Path) -> None:
    summary = History(summary="They spoke of Mira Holt.", turns=1)
    query, model = await asked(tmp_path, "Where was she born?", "Where was Mira Holt born?", history=summary)
    assert query.how == "rewritten"
    assert "They spoke of Mira Holt." in user_text(model.requests[0])


BAD = [
    ("Where was she born?", "", "empty"),
    ("Where was she born?", " \n\n ", "empty"),
    ("Where was she born?", "...", "empty"),
    ("Where was she born?", "Where was Mira Holt born?\nShe was born in Oslo.", "several_lines"),
    ("Where was she born?", "Where was Mira Holt born, " + "and The Salt Road, " * 20 + "?", "too_long"),
    ("Where was she born?", "Mira Holt was born on the road.", "an_answer"),
    ("her road please", "Mira Holt directed it.", "an_answer"),
    ("Where was she born?", "Who directed The Salt Road?", "lost_words"),
    ("And how deep is the Kelm?", "How deep is the road of Mira Holt?", "lost_words"),
    ("Where was she born?", "Where was Ada Quill born?", "invented_words"),
    ("Where was she born?", "Where in 1931 was Mira Holt born?", "invented_words"),
    ("Where was she born?", "Where was Mira Holt born among quiet green valleys?", "invented_words"),
]
"""(question, rewrite, the rule that it breaks)"""


@pytest.mark.parametrize(("question", "reply", "rule"), BAD)
async def test_a_bad_rewrite_falls_back_to_the_question(tmp_path: Path, question: str, reply: str, rule: str) -> None:
    query, model = await asked(tmp_path, question, reply)
    assert query == Rewritten(query=question, how=rule)
    assert len(model.requests) == 1


def test_every_rule_has_a_rewrite_that_breaks_it() -> None:
    assert {rule for _, _, rule in BAD} == set(RULES)


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Where was she born?", 'Standalone question: "Where was Mira Holt born?"'),
        ("And the producer?", "Who was the producer of The Salt Road?"),
        ("What about producers?", "Who produced The Salt Road?"),
        ("Thanks, and where was she born?", "Where was Mira Holt born?"),
        ("her birthplace please", "Mira Holt's birthplace"),
        ("Why?", "Why did Mira Holt direct The Salt Road?"),
        ("Tell me more about her", "Tell me more about Mira Holt."),
        ("When was that film made?", "When was the film The Salt Road made?"),
    ],
)
def test_a_good_rewrite_is_used(question: str, reply: str) -> None:
    assert broken_rule(reply, question, HISTORY) == ""


async def test_a_failed_call_falls_back_if_later_calls_may_work(tmp_path: Path) -> None:
    query, _ = await asked(tmp_path, "Where was she born?", ContextWindowError("too long"))
    assert query == Rewritten(query="Where was she born?", how="failed", reason="too long")


@pytest.mark.parametrize("fault", [AuthenticationError("no key"), DeadlineError("late")])
async def test_a_permanent_failure_ends_the_turn(tmp_path: Path, fault: ModelError | BudgetError) -> None:
    with pytest.raises(type(fault)):
        await asked(tmp_path, "Where was she born?", fault)


@pytest.mark.parametrize(
    "question",
    [
        "Who is Mira Holt?",
        "How long is the River Kelm?",
        "How long is the stream that the Pennant Bridge spans?",
        "Which is longer, the River Kelm or the River Issory?",
        "When did Mira Holt write her first letter?",
        "Is there a bridge in Oxlode?",
        "Thanks! Who designed the Pennant Bridge, please?",
        'who wrote "the salt widow"?',
        "By the way, what is a sextant?",
    ],
)
def test_standalone_questions_are_recognised(question: str) -> None:
    assert stands_alone(question)


@pytest.mark.parametrize(
    "question",
    [
        "Where was he born?",
        "And Mira Holt?",
        "Mira Holt?",
        "What about the Kelm?",
        "Who designed the bridge?",
        "who designed it",
        "Did Mira Holt direct it?",
        "Who taught Odile Torvaine, and who taught her?",
        "Is the River Kelm longer?",
        "Was Mira Holt born there?",
        "Did Mira Holt design that bridge?",
        "By the way, where was she born?",
        "WHO DESIGNED THE BRIDGE",
        "Why?",
        "",
        "?!",
    ],
)
def test_other_questions_may_not_stand_alone(question: str) -> None:
    assert not stands_alone(question)


def test_most_questions_of_the_sample_stand_alone() -> None:
    assert sum(stands_alone(question) for question in QUESTIONS) >= 0.75 * len(QUESTIONS)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=120), st.text(max_size=120))
def test_the_rules_accept_any_text(reply: str, question: str) -> None:
    assert stands_alone(reply) in {True, False}
    broken = broken_rule(reply, question, HISTORY)
    assert broken in {"", *RULES}
    if not broken:
        assert as_query(reply)
        assert "\n" not in as_query(reply)


@given(st.sampled_from(QUESTIONS))
def test_the_question_itself_breaks_no_rule(question: str) -> None:
    assert broken_rule(question, question, HISTORY) == ""


@pytest.mark.parametrize(
    "message",
    [
        "Say that in simpler words",
        "Can you explain it again, please?",
        "In German please",
        "And in French?",
        "en español, por favor",
        "日本語でお願いします",
        "Make it shorter.",
        "in one sentence",
        "Translate that into Italian",
        "Noch einmal einfacher, bitte",
        "more detail",
        "Explain it like a pirate",
        "Explain that to a child in two sentences",
        "Tell me that in German",
        "Put it in three bullet points",
    ],
)
def test_requests_to_restate_the_answer_are_recognised(message: str) -> None:
    assert asks_to_restate(message)


@pytest.mark.parametrize(
    "message",
    [
        "Who was born in German East Africa?",
        "Was it shown in Germany?",
        "Tell me about the bridge in simple words",
        "Say who built it",
        "And in 1912?",
        "Describe it in 1912",
        "Give it for 1990",
        "Tell me that for the Pennant Bridge",
        "Tell me this for the second bridge",
        "Thanks",
        "",
        *QUESTIONS[:20],
    ],
)
def test_questions_are_not_requests_to_restate(message: str) -> None:
    assert not asks_to_restate(message)
