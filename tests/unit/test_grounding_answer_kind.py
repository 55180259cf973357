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
        ("Did Ada Roth, or her sister, or Bo Lind win it?", None),
        ("Which rapper is known as Salt or Slim Road?", None),
        ("Which rapper from Oslo, Norway, is known as Salt or Slim Road?", None),
        (VERDICT, "verdict"),
        ("  were both of them born in Oslo?", "verdict"),
        (DATE, "date"),
        ("When was the composer of Salt Road born?", "date"),
        ("What is the date of birth of Mira Holt's father?", "date"),
        ("When is Mira Holt's father's birthday?", "date"),
        ("What's the birthday of Mira Holt?", "date"),
        ("The hotel was founded in which year ?", "date"),
        ("Until what day did she govern?", "date"),
        ("Who shares a birthday with Ada Roth?", None),
        ("Which actress with a date of birth of 1 May 1931 is in Salt Road?", None),
        ("What is the name of the actress whose date of birth is 1 May 1931?", None),
        ("Which day care center did she found?", None),
        ("Who won the first season of Deal or No Deal?", None),
        ("In what year did the first season of Deal or No Deal air?", "date"),
        ("How many won, in the longest season of Deal or No Deal?", "number"),
        ("What is the most populous city in Ohio or Indiana?", None),
        ("Did the last king of the line come from Norway or Sweden?", None),
        ("Who wrote Twelfth Night, or What You Will?", None),
        ("Which company, founded in Oslo, is based in Dublin or London?", None),
        ("According to Ada Roth, who directed Salt or Slim Road?", None),
        ("Which director, Ada Roth or Bo Lind, was also a writer?", "choice"),
        ("What is Ada Roth's birthday party called?", None),
        ("Which month of the Islamic calendar is holy?", None),
        ("Which year-round resort is in Ohio?", None),
        ("What day is celebrated on 5 November?", None),
        (NUMBER, "number"),
        (WHO, None),
        ("When Harry met Sally, which city did they live in?", None),
        ("In the same year as what film did it appear?", None),
        ("Which company owns the hotel or casino that he founded?", None),
        ("Do you know who founded the town?", None),
        ("Was ist die Hauptstadt von Frankreich?", None),
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
        (NUMBER, ["12", "twelve films", "none", "40 members"], ["Mira Holt", "no"]),
        (WHO, ["Mira Holt", "April", "the 9th Duke", "U2"], ["1931", "3 May 1931", "yes"]),
        ("Where was Mira Holt born?", ["Oslo", "2027 Fairmount Avenue"], ["8 December 1966", "no"]),
    ],
)
def test_an_answer_matches_the_kind_or_not(question: str, good: list[str], bad: list[str]) -> None:
    assert [answer for answer in good if of_kind(question, answer) is not True] == []
    assert [answer for answer in bad if of_kind(question, answer) is not False] == []


def test_for_an_unknown_kind_only_a_yes_or_no_is_rejected() -> None:
    assert of_kind("What genre is Salt Road?", "1931") is None
    assert of_kind("What genre is Salt Road?", "Yes") is False
    assert of_kind("Name a film of hers.", "yes") is None


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_text_can_be_checked(question: str, answer: str) -> None:
    assert of_kind(question, answer) in (True, False, None)


@pytest.mark.parametrize("question", ["Can a man who is paid by invoice claim it?", "Will those who won return?"])
def test_a_yes_or_no_may_answer_a_question_with_a_modal_verb(question: str) -> None:
    assert of_kind(question, "no") is None


@pytest.mark.parametrize(
    "question", ["Can you tell me who made it?", "Could I ask where it was?", "Will Holt was born where?"]
)
def test_a_yes_or_no_does_not_answer_a_request_or_a_question_starting_with_a_name(question: str) -> None:
    assert of_kind(question, "yes") is False
