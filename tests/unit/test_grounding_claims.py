"""Claims, their support, and the treatment of unsupported ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_agent_rag.grounding.claims import Claim, claims
from meta_agent_rag.grounding.marking import marked
from meta_agent_rag.grounding.matching import best_window, content_words, names, numbers
from meta_agent_rag.grounding.support.deriving.derived import Derived
from meta_agent_rag.grounding.support.rules import supports
from meta_agent_rag.grounding.support.verdict import Support
from meta_agent_rag.retrieval.passage import Found, Passage
from meta_agent_rag.text.sentences import sentences


def found(id_: str, title: str, text: str) -> Found:
    return Found(passage=Passage(id=id_, doc_id="d", title=title, text=text), score=0.5)


PASSAGES = [
    found("holt", "Mira Holt", "Mira Holt was a director. She was born in Oslo in 1912. She sold 1,200 prints."),
    found(
        "road", "The Salt Road", "The Salt Road is a drama film of 1950. It won three prizes and was shot in Bergen."
    ),
]


def claims_of(answer: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.marks) for claim in claims(answer)]


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("", []),
        ("Ada wrote it [1]. He left [2, 3].", [("Ada wrote it.", (1,)), ("He left.", (2, 3))]),
        ("Ada wrote it. [1] He left. [2]", [("Ada wrote it.", (1,)), ("He left.", (2,))]),
        ("Ada wrote it.[1] He left.[2]", [("Ada wrote it.", (1,)), ("He left.", (2,))]),
        ("Ada [1] wrote it [2][1].", [("Ada wrote it.", (1, 2))]),
        ("Ada wrote it.\n[2] He left.", [("Ada wrote it.", ()), ("He left.", (2,))]),
        ("# Life\n- Ada wrote it [1].\n- He left.", [("Ada wrote it.", (1,)), ("He left.", ())]),
        ("1. Ada wrote it.\n2. He left.", [("Ada wrote it.", ()), ("He left.", ())]),
        ("Here is what is known:\n\nDid he? Yes.", [("Yes.", ())]),
        ("In 1912 she said:", [("In 1912 she said:", ())]),
        ("J. Holt of the U.S. left at 5 p.m. sharp [1].", [("J. Holt of the U.S. left at 5 p.m. sharp.", (1,))]),
        ("... [1]", []),
    ],
)
def test_claims_by_hand(answer: str, stated: list[tuple[str, tuple[int, ...]]]) -> None:
    assert claims_of(answer) == stated


PIECES = [
    "Ada wrote it.",
    "He left",
    "1912",
    " ",
    "\n",
    "[1]",
    " [2].",
    "# Life",
    "- ",
    "1. ",
    "?",
    ":",
    "\u2028",
    "!",
    "(a) ",
]
ANSWERS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.text(max_size=60))


@settings(max_examples=200, deadline=None)
@given(ANSWERS)
def test_claims_have_ordered_spans_in_the_answer(answer: str) -> None:
    position = 0
    for claim in claims(answer):
        start, end = claim.span
        assert position <= start < end <= len(answer)
        assert answer[start:end] == answer[start:end].strip()
        assert claim.text == claim.text.strip() != ""
        position = end


def test_a_very_long_line_is_split() -> None:
    for text in ("He left the house. " * 600, "word " * 2400, "x" * 12_000):
        pieces = sentences(text)
        assert "".join(pieces) == text
        assert max(map(len, pieces)) <= 5_000


def test_words_numbers_and_names_are_extracted() -> None:
    assert content_words("The bridges that were designed") == content_words("a bridge designs")
    assert numbers("1,912.50 and 05 on 3rd, twelve, one") == {"1912.5", "5", "3", "12"}
    assert names("Then \u201cThe Salt Road\u201d by Mira Holt\u2019s I. in Jean-Luc") == {
        *("salt", "road", "mira", "holt", "jean", "luc"),
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["Ada wrote it.", "Oslo is old.", "It won.", "\n"]), max_size=8).map(" ".join))
def test_the_best_window_holds_the_words_it_reports(text: str) -> None:
    wanted = content_words("Ada wrote of old Oslo")
    window = best_window(wanted, text)
    assert window.held == content_words(text[window.start : window.end]) & wanted
    assert all(len(content_words(sentence) & wanted) <= len(window.held) for sentence in sentences(text))


@pytest.mark.parametrize(
    ("answer", "standing"),
    [
        ("Mira Holt was born in Oslo [1].", "supported"),
        ("She was born in Oslo in 1912 [1].", "supported"),
        ("It won 3 prizes [2].", "supported"),
        ("She sold 1200 prints [1].", "supported"),
        ("In 1912 she was born in Oslo [1].", "likely"),
        ("Yes, it was [1].", "likely"),
        ("Holt, who was born in Oslo, won three prizes with The Salt Road [1, 2].", "open"),
        ("Bergen is where Holt was born [1].", "open"),
        ("She was a director of comedies [1].", "open"),
        ("Gardening and cooking filled her days [1].", "open"),
        ("She was born in Oslo in 1913 [1].", "refuted"),
        ("She was born in Turin [1].", "refuted"),
        ("She was born in Bergen [1].", "open"),
        ("It won four prizes [2].", "open"),
        ("It won 412 prizes [2].", "refuted"),
        ("She was born in Oslo [2].", "open"),
        ("She was born in Oslo [9].", "refuted"),
        ("She was born in Oslo.", "refuted"),
    ],
)
def test_the_rules_give_each_claim_a_standing(answer: str, standing: str) -> None:
    (support,) = supports(claims(answer), PASSAGES)
    assert support.standing == standing
    assert support.supported is (standing in {"supported", "likely"})


def test_support_reports_missing_words_and_its_passage() -> None:
    (support,) = supports(claims("She was born in Turin in 1913 [1]."), PASSAGES)
    assert support.missing == ("Turin", "1913")
    assert (support.passage_id, support.number) == ("holt", 1)
    assert support.score == pytest.approx(1 / 3)


def test_an_uncited_claim_is_checked_against_the_answers_citations() -> None:
    assert [one.supported for one in supports(claims("She was born in Oslo. She was a director [1]."), PASSAGES)] == [
        True
    ] * 2
    assert [one.supported for one in supports(claims("She was born in Oslo. It is a drama [2]."), PASSAGES)] == [
        False,
        True,
    ]


ANSWER = "She was born in Oslo [1]. She died in 1999 [1]. It won three prizes [2].\n\nHe left. [1]"


def test_unsupported_claims_are_marked_or_dropped() -> None:
    stated = claims(ANSWER)
    support = supports(stated, PASSAGES)
    assert [one.supported for one in support] == [True, False, True, False]
    assert marked(ANSWER, stated, support) == (
        "She was born in Oslo [1]. She died in 1999 [1]. [unsupported] It won three prizes [2].\n\n"
        "He left. [1] [unsupported]"
    )
    assert marked(ANSWER, stated, support, drop=True) == "She was born in Oslo [1]. It won three prizes [2]."


def test_derived_figures_show_their_steps_and_uncited_claims_gain_citations() -> None:
    stated = claims("It won 3 prizes. It is 7 m high [1].")
    steps = Derived(written="7 m", operation="sum", steps="3 + 4 = 7")
    support = [
        Support(score=1.0, passage_id="road", number=2, supported=True),
        Support(score=1.0, passage_id="holt", number=1, supported=True, derived=(steps,)),
    ]
    shown = marked("It won 3 prizes. It is 7 m high [1].", stated, support)
    assert shown == "It won 3 prizes. [2] It is 7 m high [1]. [derived: 3 + 4 = 7]"


def verdicts(stated: tuple[Claim, ...], good: list[bool]) -> list[Support]:
    return [Support(score=0.0, passage_id=None, supported=ok) for ok in good[: len(stated)]]


@settings(max_examples=200, deadline=None)
@given(ANSWERS, st.lists(st.booleans(), min_size=60, max_size=60))
def test_marking_and_dropping_leave_other_claims_unchanged(answer: str, good: list[bool]) -> None:
    stated = claims(answer)
    support = verdicts(stated, good)
    bad = [claim for claim, one in zip(stated, support, strict=True) if not one.supported]
    written = marked(answer, stated, support)
    assert written.count(" [unsupported]") == len(bad)
    assert written.replace(" [unsupported]", "") == answer
    left = marked(answer, stated, support, drop=True)
    if not bad:
        assert left == answer
    elif len(bad) == len(stated):
        assert left == ""
    else:
        places = [(claim.span, one.supported) for claim, one in zip(stated, support, strict=True)]
        assert all(answer[slice(*span)] in left for span, ok in places if ok)
        assert not left.endswith((" ", "\n")) or answer.endswith((" ", "\n"))
