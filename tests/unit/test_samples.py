"""A sample row states how an answer scored, and at which stage supporting evidence was lost."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.rows.samples import sample_row
from benchmarks.rows.supporting_facts import supporting_facts
from benchmarks.rows.survival import STAGES, answer_recall, evidence_recall
from meta_agent_rag.agent.engine import Answer
from meta_agent_rag.agent.prompting import pack
from meta_agent_rag.agent.state import Draft, Packing, Round
from meta_agent_rag.datasets.dataset import Paragraph, Question
from meta_agent_rag.retrieval.passage import Found, Passage, passages_of
from tests.loop import BIRTH, FILM, QUESTION, WRONG, ask

GOLD = ("Ada wrote the first program.", "Byron was her father.")
WHO = Question(
    id="q",
    text="Who was the father of the first programmer?",
    answer="Byron",
    paragraphs=tuple(
        Paragraph(title=text.split()[0], sentences=(text,), is_supporting=text in GOLD)
        for text in (*GOLD, "Whales breathe air.")
    ),
)
# Ids of another corpus: paragraphs are identified by title and text.
EVIDENCE = [Passage(id=f"x{n}", doc_id="d", title=text.split()[0], text=text) for n, text in enumerate(GOLD)]


def round_of(retrieved: tuple[str, ...], packed: tuple[str, ...], quotes: tuple[str, ...], short: str = "a") -> Round:
    draft = Draft(answer="a", short_answer=short, quotes=quotes)
    return Round(index=0, draft=draft, packing=Packing(packed_ids=packed), evidence_ids=retrieved)


def stages(retrieved: tuple[str, ...], packed: tuple[str, ...], quotes: tuple[str, ...]) -> tuple[float, ...]:
    found = evidence_recall(WHO, round_of(retrieved, packed, quotes), EVIDENCE)
    assert found is not None
    assert tuple(found) == STAGES
    return tuple(found.values())


def test_each_stage_is_limited_by_the_previous_one() -> None:
    both = ("x0", "x1", "x9")
    assert stages(both, both, ("Byron was her father",)) == (1.0, 1.0, 0.5, 0.5)
    assert stages(both, ("x0",), GOLD) == (1.0, 0.5, 0.5, 0.5)
    assert stages((), (), GOLD) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("quotes", "short", "expected"),
    [
        (("Byron was her father.",), "Lord Byron", (1.0, 1.0, 1.0, 1.0)),
        (("Ada wrote the first program.",), "Byronic", (1.0, 1.0, 0.0, 0.0)),
    ],
)
def test_the_stages_that_still_contain_the_gold_answer(
    quotes: tuple[str, ...], short: str, expected: tuple[float, ...]
) -> None:
    found = answer_recall(WHO, round_of(("x0", "x1"), ("x0", "x1"), quotes, short=short), EVIDENCE)
    assert found == dict(zip(STAGES, expected, strict=True))


LONG = tuple(f" Sentence number {number} says nothing of interest to anybody." for number in range(20))


def long_paragraph(supporting: int) -> Question:
    """A question whose only paragraph has one supporting sentence among many."""
    paragraph = Paragraph(
        title="Long", sentences=LONG, is_supporting=True, supporting_sentences=frozenset({supporting})
    )
    return Question(id="q", text="?", answer="a", paragraphs=(paragraph,), supporting_facts=(("Long", supporting),))


def test_a_truncated_passage_counts_only_for_the_sentences_in_the_prompt() -> None:
    (passage,) = passages_of(long_paragraph(0).paragraphs)
    packing = pack([Found(passage=passage, score=0.0)], 150).packing
    assert packing.shortened_ids == (passage.id,)
    round_ = Round(index=0, draft=Draft(answer="a", short_answer="a"), packing=packing, evidence_ids=(passage.id,))
    first, last = (evidence_recall(long_paragraph(place), round_, [passage]) for place in (0, 19))
    assert first is not None
    assert last is not None
    assert (first["packed"], last["packed"]) == (1.0, 0.0)
    assert last["retrieved"] == 1.0


SALT_ROAD = Question(
    id="s",
    text=QUESTION,
    answer="Oslo",
    paragraphs=tuple(
        Paragraph(
            title=passage.title, sentences=(passage.text,), is_supporting=True, supporting_sentences=frozenset({0})
        )
        for passage in (FILM, BIRTH)
    ),
    supporting_facts=((FILM.title, 0), (BIRTH.title, 0)),
)


async def answered(folder: Path, **fields: Any) -> dict[str, Any]:
    run = await ask(folder, WRONG)
    return sample_row(SALT_ROAD, "metarag", run.answer, latency_s=1.0, **fields)


async def test_a_row_has_supporting_facts_and_joint_scores(tmp_path: Path) -> None:
    row = await answered(tmp_path)
    # the returned draft is right and quotes one of the two supporting sentences
    assert row["supporting_facts"] == [(BIRTH.title, 0)]
    assert row["support"] == {"em": 0.0, "f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}
    assert row["joint"] == {"em": 0.0, "f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5}
    assert "judge" not in row
    assert row["rounds"][1]["evidence_recall"] == {"retrieved": 1.0, "packed": 1.0, "quoted": 0.5, "used": 0.5}
    assert row["rounds"][0]["answer_recall"] == {"retrieved": 1.0, "packed": 1.0, "quoted": 0.0, "used": 0.0}


HOLT = Paragraph(
    title="Holt",
    sentences=("Mira Holt was born in Oslo in 1900.", " She moved to Bergen.", " There she built a mill."),
    is_supporting=True,
)
PAGE = Paragraph(title="Page", sentences=("Ann Page was born in Oslo.", " She sang."), is_supporting=False)
BORN = Question(id="b", text="?", answer="Oslo", paragraphs=(HOLT, PAGE), supporting_facts=(("Holt", 0),))


def facts(*quotes: str, elsewhere: str = "", packed: bool = True) -> list[tuple[str, int]]:
    """The supporting facts of one draft; `elsewhere` is a further passage that is not a paragraph of the question."""
    passages = [
        *passages_of([HOLT]),
        *([Passage(id="x", doc_id="x", title="Else", text=elsewhere)] if elsewhere else []),
    ]
    ids = tuple(passage.id for passage in passages if packed or passage.id != "x")
    draft = Draft(answer="a", short_answer="a", quotes=quotes)
    round_ = Round(index=0, draft=draft, packing=Packing(packed_ids=ids), evidence_ids=ids)
    found = tuple(Found(passage=passage, score=0.0) for passage in passages)
    return supporting_facts(
        BORN,
        Answer(
            question="?",
            text="a",
            short_answer="a",
            stop_reason="satisfied",
            chosen=0,
            rounds=(round_,),
            evidence=found,
            dropped=(),
            calls=(),
        ),
    )


@pytest.mark.parametrize(
    ("quote", "sentences"),
    [
        ("born in Oslo in 1900. She moved to Bergen", [0, 1]),
        ("in 1900.  She moved to Bergen. There she", [0, 1, 2]),
        ("She moved to Bergen. T", [1]),  # a letter is not a word
        ("in Oslo in 1900. She stayed.", []),
        ("\u201cShe moved to Bergen.\u201d", [1]),
    ],
)
def test_a_quote_stands_for_every_sentence_it_overlaps(quote: str, sentences: list[int]) -> None:
    assert facts(quote) == [("Holt", index) for index in sentences]


def test_a_short_quote_counts_only_if_unambiguous() -> None:
    assert facts("Oslo") == []  # in two paragraphs
    assert facts("Bergen") == [("Holt", 1)]
    assert facts("Berg") == []  # part of a word
    assert facts("She sang.") == [("Page", 1)]
    assert facts("She sang.", elsewhere="Ann woke. She sang. She sang aloud.") == [("Page", 1), ("Else", 1)]
    assert facts("", " . ") == []


def test_a_quote_from_another_passage_of_the_prompt_counts_as_a_prediction() -> None:
    other = "Whales sing. They breathe air. They were never born in Oslo in 1900."
    assert facts("They breathe air", elsewhere=other) == [("Else", 1)]
    assert facts("They breathe air", elsewhere=other, packed=False) == []
    assert facts("born in Oslo in 1900", elsewhere=other) == [("Holt", 0), ("Else", 2)]
