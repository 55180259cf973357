"""The kind of answer a question asks for, and whether an answer is of that kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_agent_rag.grounding.answer_kind import kind_asked, of_kind

CHOICE = "Which film has the director who died earlier, The Salt Road or Two Lamps?"
VERDICT = "Are Salt Road and Two Lamps both from the same country?"
DATE = "In which year did the director of Salt Road die?"
NUMBER = "How many films did the director of Salt Road make?"
WHO = "Who directed Salt Road?"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        (CHOICE, "choice"),
        ("Which magazine was founded first, “Lamp” or “Oar”?", "choice"),
        ("Does the band Salt or the band Oar come from a larger state?", "choice"),
        ("Who was born first Ada Roth or Bo Lind?", "choice"),
        ("Was Ada Roth or Bo Lind born first?", "choice"),
        ("Was Mira Holt a writer or a painter?", None),
        ("Did Ada Roth or Bo Lind ever win the prize?", None),
        ("Which rapper is known as Salt or Slim Road?", None),
        (VERDICT, "verdict"),
        ("  were both of them born in Oslo?", "verdict"),
        (DATE, "date"),
        ("When was the composer of Salt Road born?", "date"),
        ("What is the date of birth of Mira Holt's father?", "date"),
        ("The hotel was founded in which year ?", "date"),
        ("Until what day did she govern?", "date"),
        ("Who shares a birthday with Ada Roth?", None),
        ("Which actress with a date of birth of 1 May 1931 is in Salt Road?", None),
        ("Who won the first season of Deal or No Deal?", None),
        ("In what year did the first season of Deal or No Deal air?", "date"),
        ("Did the last king of the line come from Norway or Sweden?", None),
        ("According to Ada Roth, who directed Salt or Slim Road?", None),
        ("Which director, Ada Roth or Bo Lind, was also a writer?", "choice"),
        ("Which month of the Islamic calendar is holy?", None),
        ("What day is celebrated on 5 November?", None),
        (NUMBER, "number"),
        (WHO, None),
        ("When Harry met Sally, which city did they live in?", None),
        ("In the same year as what film did it appear?", None),
        ("Do you know who founded the town?", None),
        ("When does the office close?", None),
        ("", None),
    ],
)
def test_the_kind_is_read_from_the_words_of_the_question(question: str, kind: str | None) -> None:
    assert kind_asked(question) == kind


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (CHOICE, ["Salt Road", "two lamps", "Two Lamps (film)"], ["Mira Holt", "1931", "yes"]),
        (VERDICT, ["yes", "No.", "Yes, Norway"], ["Norway", "both"]),
        (DATE, ["1931", "3 May 1931", "May", "the 19th century"], ["Mira Holt", "Oslo", "yes"]),
        (NUMBER, ["12", "twelve films", "none", "40 members", "hundreds"], ["Mira Holt", "no"]),
        (WHO, ["Mira Holt", "April", "the 9th Duke", "U2"], ["1931", "3 May 1931", "yes"]),
        ("Where was Mira Holt born?", ["Oslo", "2027 Fairmount Avenue"], ["8 December 1966", "no"]),
    ],
)
def test_an_answer_matches_the_kind_or_not(question: str, good: list[str], bad: list[str]) -> None:
    assert [answer for answer in good if of_kind(question, answer) is not True] == []
    assert [answer for answer in bad if of_kind(question, answer) is not False] == []


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_text_can_be_checked(question: str, answer: str) -> None:
    assert of_kind(question, answer) in (True, False, None)


@pytest.mark.parametrize(
    ("question", "answer", "fits"),
    [
        ("What genre is Salt Road?", "1931", None),
        ("What genre is Salt Road?", "Yes", False),
        ("Name a film of hers.", "yes", None),
        ("Can a man who is paid by invoice claim it?", "no", None),
        ("Will those who won return?", "no", None),
        ("Can you tell me who made it?", "yes", False),
        ("Will Holt was born where?", "yes", False),
    ],
)
def test_a_yes_or_no_may_answer_a_modal_verb_and_no_other_kind(question: str, answer: str, fits: bool | None) -> None:
    assert of_kind(question, answer) is fits
