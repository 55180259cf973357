"""A sample row says at which stage supporting evidence was lost."""

from benchmarks.datasets.question import Paragraph, Question
from benchmarks.samples import evidence_recall
from meta_agent_rag.agent.state import Draft, Packing, Round
from meta_agent_rag.retrieval.passage import Passage

GOLD = ("Ada wrote the first program.", "Byron was her father.")
QUESTION = Question(
    id="q",
    text="Who was the father of the first programmer?",
    answer="Byron",
    paragraphs=tuple(
        Paragraph(title=text.split()[0], sentences=(text,), is_supporting=text in GOLD)
        for text in (*GOLD, "Whales breathe air.")
    ),
)
# Ids of another corpus: paragraphs are known by title and text.
EVIDENCE = [Passage(id=f"x{n}", doc_id="d", title=text.split()[0], text=text) for n, text in enumerate(GOLD)]


def stages(retrieved: tuple[str, ...], packed: tuple[str, ...], quotes: tuple[str, ...]) -> dict[str, float] | None:
    draft = Draft(answer="a", short_answer="a", quotes=quotes)
    round_ = Round(index=0, draft=draft, packing=Packing(packed_ids=packed), evidence_ids=retrieved)
    return evidence_recall(QUESTION, round_, EVIDENCE)


def test_each_stage_counts_what_the_one_before_left() -> None:
    both = ("x0", "x1", "x9")
    assert stages(both, both, ("Byron was her father",)) == {"retrieved": 1.0, "packed": 1.0, "quoted": 0.5}
    assert stages(both, ("x0",), GOLD) == {"retrieved": 1.0, "packed": 0.5, "quoted": 0.5}
    assert stages((), (), GOLD) == {"retrieved": 0.0, "packed": 0.0, "quoted": 0.0}


def test_a_question_without_labels_has_none() -> None:
    bare = Question(id="q", text="?", answer="a", paragraphs=())
    round_ = Round(index=0, draft=Draft(answer="a", short_answer="a"), packing=Packing(), evidence_ids=())
    assert evidence_recall(bare, round_, []) is None
