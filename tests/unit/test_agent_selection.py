"""When two answers count as equal, and which draft is returned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.agent.selection import select
from meta_agent_rag.agent.state import Diagnosis, Draft, Packing, Round, SecondAnswer, Signals
from meta_agent_rag.agent.stopping import converged, oscillates, same_draft
from meta_agent_rag.text.normalise import jaccard


def draft(short: str, answer: str | None = None, *, abstained: bool = False) -> Draft:
    return Draft(answer=answer or f"It is {short}.", short_answer=short, abstained=abstained)


def round_(
    index: int,
    short: str,
    *,
    verbatim: float | None = None,
    second: str | None = None,
    similarity: float | None = 0.0,
    satisfied: bool = False,
    diagnosis: str | None = "reasoning_error",
    abstained: bool = False,
    measured: bool = True,
) -> Round:
    signals = Signals(
        similarity=similarity, agreement=None, verbatim=verbatim, abstained=abstained, evidence_passages=1
    )
    found = Diagnosis(
        deficit=diagnosis or "none",
        rationale="r",
        error_type="none",
        suggestion="",
        suggested_queries=(),
        source="critic",
    )
    return Round(
        index=index,
        draft=draft(short, abstained=abstained),
        packing=Packing(),
        evidence_ids=(),
        second_answer=SecondAnswer(short_answer=second, steps=(), packed_ids=(str(index),)) if second else None,
        signals=signals if measured else None,
        satisfied=satisfied,
        diagnosis=found if diagnosis else None,
    )


def test_jaccard_similarity_by_hand() -> None:
    assert jaccard("red green", "green blue") == pytest.approx(1 / 3)
    assert jaccard("", "") == 1.0
    assert jaccard("red", "") == 0.0


def test_convergence_needs_both_answers_to_match() -> None:
    one = draft("Ada before Bob", "Ada came before Bob.")
    other = draft("Bob before Ada", "Bob came before Ada.")
    assert jaccard(one.answer, other.answer) == 1.0
    assert not same_draft(one, other, 0.85)
    assert not same_draft(draft("Oslo", "x y"), draft("Oslo", "p q"), 0.85)
    assert same_draft(draft("Oslo"), draft("the OSLO."), 0.4)


@pytest.mark.parametrize(("threshold", "same"), [(0.5, True), (0.51, False)])
def test_convergence_at_the_threshold(threshold: float, same: bool) -> None:
    drafts = [draft("Oslo", "red green blue"), draft("Oslo", "red green gold")]
    assert jaccard(drafts[0].answer, drafts[1].answer) == 0.5
    assert converged(drafts, threshold) is same


def test_oscillation_is_a_return_not_a_repetition() -> None:
    assert oscillates([draft("Oslo"), draft("Rome"), draft("Oslo")], 0.85)
    assert oscillates([draft("Oslo"), draft("Rome"), draft("Bern"), draft("Oslo")], 0.85)
    assert not oscillates([draft("Oslo"), draft("Oslo")], 0.85)
    assert not oscillates([draft("Oslo"), draft("Rome"), draft("Rome")], 0.85)


@pytest.mark.parametrize(
    "rounds",
    [
        [round_(0, "Oslo"), round_(1, "NOT FOUND", verbatim=1.0, abstained=True)],
        [round_(0, "Oslo", satisfied=True, diagnosis=None), round_(1, "Rome", verbatim=1.0)],
        [round_(0, "Oslo", diagnosis="none"), round_(1, "Rome", verbatim=1.0)],
        [round_(0, "Oslo", second="Oslo"), round_(1, "Rome", verbatim=1.0)],
        [round_(0, "Oslo", verbatim=1.0), round_(1, "Rome", verbatim=0.5, similarity=0.3)],
        [round_(0, "Oslo", verbatim=0.5), round_(1, "Rome", verbatim=None)],
        [round_(0, "Oslo"), round_(1, "Rome", similarity=0.9), round_(2, "oslo.")],
        [round_(0, "Oslo", similarity=0.3), round_(1, "Rome", similarity=0.2)],
        [round_(0, "Oslo"), round_(1, "Rome", measured=False)],
        [round_(0, "Oslo"), round_(1, "Rome")],
    ],
    ids=["answer", "satisfied", "critic", "second", "verbatim", "quoted", "votes", "cosine", "unmeasured", "first"],
)
def test_the_best_supported_draft_wins_over_the_last(rounds: list[Round]) -> None:
    assert select(rounds, "best").index == 0
    assert select(rounds, "last").index == rounds[-1].index


@pytest.mark.parametrize(
    "rounds",
    [
        [round_(0, "NOT FOUND", abstained=True), round_(1, "Rome")],
        [round_(0, "Oslo", verbatim=1.0), round_(1, "Rome", satisfied=True)],
        [round_(0, "Oslo", verbatim=0.0), round_(1, "Rome", verbatim=0.5)],
        [round_(0, "Oslo"), round_(1, "Rome", similarity=0.2)],
    ],
)
def test_a_better_later_draft_wins(rounds: list[Round]) -> None:
    assert select(rounds, "best").index == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 1)), min_size=1, max_size=6))
def test_best_abstains_only_if_every_draft_abstains(rows: list[tuple[str, bool, float]]) -> None:
    rounds = [
        round_(index, short, abstained=abstained, verbatim=verbatim)
        for index, (short, abstained, verbatim) in enumerate(rows)
    ]
    chosen = select(rounds, "best")
    assert chosen in rounds
    assert chosen.draft.abstained == all(item.draft.abstained for item in rounds)
    assert select(rounds, "last") is rounds[-1]
