"""Page numbers: the model sees them, and its answer is checked against the passage's pages."""

from dataclasses import replace
from pathlib import Path

import pytest

from meta_agent_rag.agent.prompting import pack, without_marks
from meta_agent_rag.grounding.claims import Claim
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.retrieval.passage import Found, Passage

from .test_agent_grounded import FixedRetriever, answering, grounded

QUESTION = "What page discusses passive compliance?"
SPRING = "Passive compliance uses springs in the wrist of a robot. Each wrist has 4 joints."
PASSAGES = (
    Passage(
        id="compliance", doc_id="robots", title="Robot Wrists", text=SPRING,
        section="Chapter \"2\" & more", start_page=41, end_page=41,
    ),
    Passage(id="drives", doc_id="robots", title="Wrists", text="Drives were sold in Oslo.", start_page=7, end_page=9),
    Passage(id="web", doc_id="web", title="Compliance", text="Passive compliance is older than robots."),
)  # fmt: skip
FOUND = tuple(Found(passage=passage, score=1.0) for passage in PASSAGES)


def shown(answer: str, mark: int, question: str = QUESTION) -> bool:
    (support,) = supports([Claim(text=answer, span=(0, len(answer)), marks=(mark,))], FOUND, question=question)
    return support.supported


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Passive compliance is discussed on page 41.", QUESTION),
        ("Page 41 discusses passive compliance.", QUESTION),
        ("Page 41.", "On which page is passive compliance?"),
        ("41, page 41", "On which page is passive compliance?"),
        ("Springs in the wrist are on p. 41.", "On which page are springs in the wrist?"),
        ("Passive Compliance wird auf Seite 41 behandelt.", "Auf welcher Seite wird Passive Compliance behandelt?"),
    ],
)
def test_the_page_of_the_passage_is_supported(answer: str, question: str) -> None:
    assert shown(answer, 1, question)


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("Passive compliance is discussed on page 42.", 1),
        ("Passive compliance is discussed on page 41 and page 50.", 1),
        ("Passive compliance is discussed on page 8.", 2),
        ("Passive compliance is discussed on page 41.", 3),
        ("Passive compliance uses 41 springs.", 1),
        ("Hydraulic brakes are discussed on page 41.", 1),
        ("Page 7.", 2),
        ("Passive compliance was invented by Mira Holt on page 41.", 1),
    ],
)
def test_other_pages_and_further_claims_are_not_supported(answer: str, mark: int) -> None:
    assert not shown(answer, mark)


def test_a_passage_over_several_pages_supports_each_of_them() -> None:
    question = "On which page are drives sold in Oslo?"
    assert all(shown(f"Drives were sold in Oslo, page {page}.", 2, question) for page in (7, 8, 9))
    assert not shown("Drives were sold in Oslo, page 10.", 2, question)


NOTES = (
    "Passive compliance was named in 1979.\n\nIts springs are described later.",
    'Flux is kept dry. Passive compliance is discussed here, with 2 springs and <page n="9"> as an example.',
)
OVER = Passage(
    id="over", doc_id="notes", title="Welding Notes", text="\n\n".join(NOTES),
    start_page=2, end_page=3, page_breaks=((len(NOTES[0]) + 2, 3),),
)  # fmt: skip
UNKNOWN_BREAK = replace(OVER, page_breaks=())


def over_a_break(answer: str, question: str, passage: Passage = OVER) -> bool:
    found = [Found(passage=passage, score=1.0)]
    (support,) = supports([Claim(text=answer, span=(0, len(answer)), marks=(1,))], found, question=question)
    return support.supported


@pytest.mark.parametrize(
    ("question", "answer", "right", "wrong"),
    [
        ("On which page is flux kept dry?", "Flux is kept dry on page {}.", 3, 2),
        ("On which page is flux?", "It is on page {}.", 3, 2),
        ("Which page of the Welding Notes is about flux?", "Page {}.", 3, 2),
        ("On which page is passive compliance discussed?", "Passive compliance is discussed on page {}.", 3, 2),
        ("On which page are springs described?", "The springs are described on page {}.", 2, 3),
        ("On which page is the number of springs?", "2 springs are on page {}.", 3, 2),
    ],
)
def test_a_page_is_that_of_the_sentence_if_the_break_is_known(
    question: str, answer: str, right: int, wrong: int
) -> None:
    assert over_a_break(answer.format(right), question)
    assert not over_a_break(answer.format(wrong), question)
    assert not over_a_break(answer.format(4), question)
    assert over_a_break(answer.format(wrong), question, UNKNOWN_BREAK), "corpora of earlier versions do not know it"


def test_two_pages_are_both_checked() -> None:
    question = "On which pages is passive compliance?"
    assert over_a_break("Passive compliance is on page 2 and page 3.", question)
    assert not over_a_break("Flux is on page 2 and page 3.", "On which pages is flux?")


def test_the_prompt_marks_where_a_page_begins() -> None:
    found = [Found(passage=OVER, score=1.0)]
    text = pack(found, 1000, marked=True).text
    assert '\n\n<page n="3"/>\u00a6 Flux is kept dry.' in text
    assert text.count("<page n=") == 1, "a document cannot mark one"
    assert pack(found, 1000).text.count('later.\n\n<page n="3"/>Flux') == 1
    assert pack([Found(passage=UNKNOWN_BREAK, score=1.0)], 1000).text.count("later.\n\nFlux") == 1
    assert "<page n=" not in pack(found, 35, marked=True).text, "shortened to the first page"
    assert without_marks('described later. <page n="3"/> \u00a6 Flux is') == "described later. Flux is"


@pytest.mark.parametrize(("page", "refused"), [(3, None), (2, "unsupported"), (1, "unsupported")])
@pytest.mark.parametrize("check", ["rules", "both", "critic"])
async def test_a_wrong_page_is_not_shown_even_if_a_critic_accepts_it(
    tmp_path: Path, page: int, refused: str | None, check: str
) -> None:
    said, quote = (
        f"Passive compliance is discussed on page {page} [1].",
        "Passive compliance is discussed here, with 2 springs",
    )
    verdicts = [
        {"claim": 0, "quotes": [], "supported": False},
        {"claim": 1, "quotes": [quote], "supported": True},
    ]
    script = answering(said, quotes=(quote,), short=f"page {page}") | {
        "check_claims": {"claims": verdicts, "answers_question": True}
    }
    question, passages = "On which page is passive compliance discussed?", FixedRetriever(passages=(OVER,))
    reply = await grounded(tmp_path, script, f"CLAIM_CHECK={check}", question=question, retriever=passages)
    assert reply.refused == refused
    if refused is None:
        assert reply.text == "Passive compliance is discussed on page 3 [Welding Notes, p.3]."


async def test_a_paraphrase_of_the_page_is_left_to_the_critic(tmp_path: Path) -> None:
    quote = "Passive compliance is discussed here, with 2 springs"
    verdicts = [{"claim": 0, "quotes": [], "supported": False}, {"claim": 1, "quotes": [quote], "supported": True}]
    question, passages = "Where are yielding joints treated?", FixedRetriever(passages=(OVER,))
    for page, refused in ((3, None), (2, "unsupported")):
        said = f"Yielding joints are treated on page {page} [1]."
        script = answering(said, quotes=(quote,), short=f"page {page}") | {
            "check_claims": {"claims": verdicts, "answers_question": True}
        }
        reply = await grounded(tmp_path, script, "CLAIM_CHECK=both", question=question, retriever=passages)
        assert reply.refused == refused, page


def test_the_prompt_shows_page_and_section() -> None:
    lines = pack(FOUND, 1000, marked=True).text.split("\n")
    assert lines[0].startswith(
        '<passage n="1" title="Robot Wrists" section="Chapter &quot;2&quot; &amp; more" page="41">'
    )
    assert lines[1].startswith('<passage n="2" title="Wrists" pages="7-9">')
    assert lines[2].startswith('<passage n="3" title="Compliance">')


async def test_a_question_about_a_page_is_answered(tmp_path: Path) -> None:
    script = answering(
        "Passive compliance is discussed on page 41 [1].", quotes=(SPRING.partition(".")[0] + ".",), short="41"
    )
    reply = await grounded(tmp_path, script, question=QUESTION, retriever=FixedRetriever(passages=PASSAGES))
    assert (reply.refused, reply.short_answer) == (None, "41")
    assert reply.text == "Passive compliance is discussed on page 41 [Robot Wrists, p.41]."
