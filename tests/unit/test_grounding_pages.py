"""Page numbers: the model sees them, and its answer is checked against the passage's pages."""

from pathlib import Path

import pytest

from meta_agent_rag.agent.prompting.packing import pack
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
